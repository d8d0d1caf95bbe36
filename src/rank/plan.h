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
// plan is to be freed in both cases.
const char* plan_read(int fd, struct plan* plan);
void plan_free(struct plan* plan);
