// Who this process is, as records name it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
  char host[65];
  char boot_id[40];
  char random[33];  // unique to this process
  pid_t pid;
  uint64_t start_ticks;
};

// False with errno when /proc does not tell.
bool identity_read(struct identity* identity);
