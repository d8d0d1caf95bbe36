// The monotonic clock, which nobody sets: what a wait or a silence is judged by (DESIGN 5.8). Thread-safe.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace tp {

inline absl::Duration SinceBoot() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace tp
