// The helper process that rewrites `<pool>-<rank>.heartbeat` and looks at the fence.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "identity.h"
#include "options.h"

struct heartbeat {
  pid_t pid;
  int fence_fd;  // readable: the fence is closed, or the helper has ended
};

// `beat_count` lives in memory shared with the helper. The helper dies with the runner. False with
// errno.
bool heartbeat_start(struct heartbeat* heartbeat, uint64_t* beat_count, int dir_fd, const struct run_options* options,
                     const struct identity* identity);

// After fence_fd became readable: true when the fence was found closed.
bool heartbeat_saw_closed_fence(const struct heartbeat* heartbeat);

// Does not wait: a helper that hangs in storage must not hold up the end.
void heartbeat_stop(struct heartbeat* heartbeat);
