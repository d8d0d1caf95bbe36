// The queue as committed: the steps that are due and wait, in the order in which they are looked at. Read
// from the store, so that the loop does nothing for who looks.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/fair_share.h"
#include "core/ids.h"
#include "core/registry.h"
#include "core/step.h"
#include "store/store.h"

namespace tp::api {

// What a step asks for; the same one for all steps that ask the same.
struct WantedCards {
  std::string shape;  // `h200:16 = 2 nodes x 8`; where that is not known, the flags as typed
  int64_t cards = 0;
  std::vector<std::string> series;  // each once
};

struct WaitingStep {
  core::StepRef ref;
  std::string owner;
  int32_t priority = 0;
  int32_t effective_priority = 0;
  double share = 0;  // of its owner
  absl::Time submitted_at;
  bool held = false;  // by somebody, or for its shape: it can't start before those behind it
  std::shared_ptr<const WantedCards> wanted;
};

// Whether both want cards of one series.
bool Compete(const WaitingStep& a, const WaitingStep& b);
bool Wants(const WaitingStep& step, const std::string& series);

// Reads of each step what orders it, and sorts. The shares are the loop's.
absl::StatusOr<std::vector<WaitingStep>> ReadQueue(store::Reader& reader, const core::Registry& registry,
                                                   const core::Policy& policy, const core::Shares& shares,
                                                   absl::Time now);

// What that comes to now, where `before` was so and since then only runs that are named have changed: costs these,
// and a walk through the others.
absl::StatusOr<std::vector<WaitingStep>> RenewQueue(const std::vector<WaitingStep>& before,
                                                    const std::set<int64_t>& changed, store::Reader& reader,
                                                    const core::Registry& registry, const core::Policy& policy,
                                                    const core::Shares& shares, absl::Time now);

}  // namespace tp::api
