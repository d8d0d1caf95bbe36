// Work on several threads while the caller watches.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace tp::cli {

// Runs `work(worker)` for each worker, on a thread of its own, and returns the first error. `watch` is called
// on the caller's thread ten times a second until all are done.
absl::Status RunInParallel(int workers, const std::function<absl::Status(int worker)>& work,
                           const std::function<void()>& watch);

}  // namespace tp::cli
