// Every store keeps times and durations as whole microseconds, so that a value means the same whether it
// was read back from a file or never left memory. Pure.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "core/correction.h"
#include "core/quota.h"
#include "core/run.h"
#include "core/step.h"

namespace tp::store {

inline constexpr int64_t kFutureUs = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kPastUs = std::numeric_limits<int64_t>::min();

// Rounds down. Infinite times and durations, and those out of range, are the extreme values.
inline int64_t ToMicros(absl::Time time) { return absl::ToUnixMicros(time); }
inline int64_t ToMicros(absl::Duration duration) { return absl::ToInt64Microseconds(duration); }

inline absl::Time TimeOf(int64_t unix_us) {
  if (unix_us == kFutureUs) return absl::InfiniteFuture();
  if (unix_us == kPastUs) return absl::InfinitePast();
  return absl::FromUnixMicros(unix_us);
}

inline absl::Duration DurationOf(int64_t us) {
  if (us == kFutureUs) return absl::InfiniteDuration();
  if (us == kPastUs) return -absl::InfiniteDuration();
  return absl::Microseconds(us);
}

inline void RoundToMicros(absl::Time& time) { time = TimeOf(ToMicros(time)); }
inline void RoundToMicros(absl::Duration& duration) { duration = DurationOf(ToMicros(duration)); }

// Every time and duration in it.
void RoundToMicros(core::Run& run);
void RoundToMicros(core::Step& step);
void RoundToMicros(core::QuotaRule& rule);
void RoundToMicros(core::StorageUse& use);
void RoundToMicros(core::Correction& correction);

}  // namespace tp::store
