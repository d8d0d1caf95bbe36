// The job's cgroup (version 2). The runner stays outside of it.
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

// The count of OOM kills so far in the given group, or where it is NULL in this process's own group
// (version 2 or 1). -1 where the kernel does not tell.
int64_t cgroup_oom_kills(const char* path);
