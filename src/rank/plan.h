// The launch plan: what `tp-rank launch` reads from stdin (format in docs/launch-contract.md).
#pragma once

#include <stddef.h>

#include "options.h"

enum { PLAN_MAX_RANKS = 1024 };

struct plan_rank {
  char** environment;  // complete, NULL-terminated
  struct run_options options;
};

struct plan {
  char* bytes;
  char** strings;
  struct plan_rank* ranks;
  size_t rank_count;
};

// Reads a plan to the end of the stream and checks it whole. NULL, or what is wrong with it. The
// memory is the process's to keep.
const char* plan_read(int fd, struct plan* plan);
