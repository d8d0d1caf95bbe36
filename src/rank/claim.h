// Claim and fence: which launch owns the attempt, which process runs the rank.
#pragma once

#include <stdbool.h>

#include "identity.h"
#include "options.h"
#include "record.h"

enum claim_result {
  CLAIM_WON,
  CLAIM_NOT_OWNER,      // another launch, another process or the fence
  CLAIM_STORAGE_ERROR,  // nothing may be concluded
};

// Claims the attempt for this launch's nonce, then the rank for this process. Both claims are
// durable when it returns CLAIM_WON; otherwise *reason says why not. `cgroup` may be NULL.
enum claim_result claim_rank(int dir_fd, const struct run_options* options, const char* cgroup,
                             const struct identity* identity, const char** reason);

enum fence_state { FENCE_OPEN, FENCE_CLOSED, FENCE_UNREADABLE };

enum fence_state fence_read(int dir_fd);

// The names every record of a rank begins with.
void claim_add_identity(struct record* record, const struct run_options* options, const struct identity* identity);
