// Calls of a backend that never throw and always answer in full: what a faulty backend does to one
// call stays in that call's answer. Thread-safe as the backend is.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "loop/effects.h"
#include "tp/backend.h"

namespace tp::driver {

// One outbox row on its way.
struct LaunchCall {
  LaunchSpec spec;
};
struct FenceCall {};
struct SignalCall {
  StopLevel level = StopLevel::kTerm;
};
struct RemoveCall {};
using Call = std::variant<LaunchCall, FenceCall, SignalCall, RemoveCall>;

loop::EffectResult Perform(Backend& backend, const Call& call, const AttemptTarget& target, absl::Time deadline);

// The answer to a call that was begun and not heard of again.
loop::EffectResult LostAnswer(const Call& call, std::string_view why);
// The answer to a call that was never begun.
loop::EffectResult NotSent(const Call& call, std::string_view why);

// Always one observation per target.
std::vector<Observation> ObserveAll(Backend& backend, const std::vector<AttemptTarget>& targets, absl::Time deadline);

}  // namespace tp::driver
