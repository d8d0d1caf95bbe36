// Runs a short-lived program to its end: argument vector, no shell, only the environment given, no
// inherited descriptor, its own session. Safe from any thread; blocks the caller.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tp {

struct Command {
  std::vector<std::string> argv;  // argv[0]: an absolute path
  std::vector<std::string> env;   // `NAME=value`, complete
  std::string stdin_bytes;
  size_t max_output_bytes = 64 * 1024;  // of each stream; what is beyond is read and dropped
  int cancel_fd = -1;                   // not owned; -1: none
  // Given all of stdout as it comes, in the caller's thread.
  std::function<void(std::string_view bytes)> on_output = nullptr;
};

struct CommandResult {
  int exit_code = -1;   // -1 when a signal ended it
  int term_signal = 0;  // 0 when it exited
  std::string out;
  std::string err;
};

// NOT_FOUND or PERMISSION_DENIED where the program cannot be executed, DEADLINE_EXCEEDED where it ran
// until `deadline` and was killed with its process group, CANCELLED where that was because `cancel_fd` had become
// readable, UNAVAILABLE where the machine lacks something.
// Descendants that left its session go on, and holding its output open keeps nobody waiting.
absl::StatusOr<CommandResult> RunCommand(const Command& command, absl::Time deadline);

}  // namespace tp
