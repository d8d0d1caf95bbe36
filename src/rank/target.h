// The rank that `signal` and `reap` are about, found through its claim.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record.h"

struct target {
  int dir_fd;
  const char* pool;
  const char* rank;
  struct record_view claim;
  pid_t runner_pid;
  uint64_t runner_start_ticks;
};

// Reads the claim and proves that it is of this host and boot. Returns EXIT_DONE or the exit code to
// end with.
int target_open(struct target* target, const char* dir, const char* pool, const char* rank);
