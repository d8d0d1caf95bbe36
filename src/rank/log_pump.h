// Copies the job's output from a pipe to `<pool>-<rank>.log` in a helper process, with rotation by
// size, and writes what the runner has to say to `<pool>-<rank>.system.log`.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

enum { LOG_SEGMENTS_MAX = 8 };

// Lives in memory shared with the helper, so that a helper that was killed can be replaced.
struct log_state {
  uint64_t written_bytes;                     // of the whole stream
  uint64_t lost_bytes;                        // dropped because of storage errors
  uint64_t told_lost_bytes;                   // of these, what the system log tells of
  uint64_t gap_bytes;                         // position in the stream after which the last were dropped
  uint64_t segment_start_bytes;               // position of the current file's first byte
  uint64_t segment_starts[LOG_SEGMENTS_MAX];  // rotated files still kept, oldest first
  uint32_t segment_count;
};

struct log_pump {
  pid_t pid;
  int data_read_fd;   // also kept open by the runner: output waits while a helper is replaced
  int data_write_fd;  // for the job; closed by the runner once the job has it
  int control_fd;
};

// Makes the pipes and starts the helper. False with errno.
bool log_pump_start(struct log_pump* pump, struct log_state* state, int dir_fd, const struct run_options* options);

// Starts a new helper in place of one that died.
bool log_pump_restart(struct log_pump* pump, struct log_state* state, int dir_fd, const struct run_options* options);

// One line for the system log; never blocks, dropped when the helper does not keep up.
void log_pump_say(const struct log_pump* pump, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Tells the helper to take what is in the pipe, sync and end, even if a process outside the job's
// tree still holds the pipe. Its end is seen by helper_reap().
void log_pump_finish(struct log_pump* pump);
