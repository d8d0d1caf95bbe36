// -w: an answer that is shown again whenever something has happened. On a terminal it is repainted in
// place; elsewhere each new one is appended, a blank line (of JSON: nothing) between them.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/answer.h"

namespace tp::cli {

// An answer that owns what it shows.
struct Frame {
  Answer answer;
  bool last = false;  // nothing will change any more
  std::string talk;   // said on stderr where the answer is shown once
};

// Until a last frame, which gives kOk, or Ctrl-C.
absl::StatusOr<ExitCode> Watch(Context& context, const std::function<absl::StatusOr<Frame>(Client&)>& fetch);

// Once, or with `watch` again and again.
absl::StatusOr<ExitCode> ShowOrWatch(Context& context, bool watch,
                                     const std::function<absl::StatusOr<Frame>(Client&)>& fetch);

}  // namespace tp::cli
