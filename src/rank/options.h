// The command line of `tp-rank run`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct run_options {
  const char* dir;
  const char* key;
  const char* nonce;
  const char* pool;  // decimal index, as in file names
  const char* rank;  // decimal index
  const char* workdir;
  const char* cgroup;  // NULL where none
  int64_t log_max_bytes;
  int64_t log_stall_ms;  // how long a failing log write may hold up the job before bytes are dropped
  int64_t heartbeat_ms;
  int64_t end_grace_ms;
  char** argv;  // the job, NULL-terminated
};

// Parses what follows `run`, NULL-terminated. The strings stay the caller's. False: *problem says
// what is wrong.
bool options_parse(char** arguments, struct run_options* options, const char** problem);

// A decimal index as used for pools and ranks.
bool options_is_index(const char* text);
