// cgroups (version 2): the job's, which the runner stays outside of, and the runners' own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Makes the directory when it is not there. False with errno when it can't serve: not a cgroup v2
// directory, or this very process is in it. *created tells whether to remove it afterwards.
bool cgroup_prepare(const char* path, bool* created);

bool cgroup_join(const char* path);

// False for a group that does not exist.
bool cgroup_is_populated(const char* path);

// Sends SIGKILL to everything in the group and below it.
void cgroup_kill(const char* path);

void cgroup_remove(const char* path);

// Where the kernel counts the OOM kills among the job's processes and no others.
struct oom_counter {
  char group[4096];
  const char* file;  // NULL: nowhere
};

// Call it before the job exists. `path` is the job's own group; where it is NULL, this process's group
// serves if nothing but the runner is in it, as in a container or a batch step.
void oom_counter_find(struct oom_counter* counter, const char* path);

// Kills so far, or -1 where they can't be told.
int64_t oom_counter_read(const struct oom_counter* counter);
