// The job's first process.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock.h"
#include "options.h"

enum job_step { JOB_STEP_CGROUP, JOB_STEP_WORKDIR, JOB_STEP_EXEC };

// What the child reports before it has become the job. A cgroup that can't be joined does not stop
// it; the other steps do.
struct job_report {
  enum job_step step;
  int error;
};

struct job {
  pid_t pid;
  uint64_t start_ticks;
  struct stamp started;
  int report_fd;  // reports, then end of file once the program runs or the child is dead
};

// Forks the first process, with its output going to output_fd. `cgroup` may be NULL. False with
// errno.
bool job_spawn(struct job* job, const struct run_options* options, const char* cgroup, int output_fd, mode_t job_umask);

// The environment entry that every process of the tree inherits: key/pool-rank/nonce.
#define JOB_TOKEN_NAME "TP_RANK_TOKEN"

enum { JOB_TOKEN_CAPACITY = 256 };

void job_format_token(char* token, const char* key, const char* pool, const char* rank, const char* nonce);
