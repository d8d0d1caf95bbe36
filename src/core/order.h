// In which order queued steps are looked at (DESIGN 6, order): effective priority, then the owner's share
// where that counts, then submission, then id. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/time/time.h"
#include "core/ids.h"
#include "core/run.h"
#include "core/step.h"

namespace tp::core {

// The priority that was given and one more for each `aging` since submission, but no more than `aging_cap`,
// and at most kMaxPriority.
int32_t EffectivePriority(int32_t priority, absl::Time submitted, absl::Time now, const Policy& policy);

// When it rises next; nothing: never.
std::optional<absl::Time> NextAging(int32_t priority, absl::Time submitted, absl::Time now, const Policy& policy);

// The smaller one comes first.
struct QueueOrder {
  int32_t effective_priority = 0;
  double share = 0;  // decayed gpu_seconds of the owner; 0 where they do not count
  absl::Time submitted;
  StepRef step;
  bool operator==(const QueueOrder&) const = default;

  bool operator<(const QueueOrder& other) const {
    return std::tuple(-effective_priority, share, submitted, step) <
           std::tuple(-other.effective_priority, other.share, other.submitted, other.step);
  }
};

}  // namespace tp::core
