// How long each queued job waits at which gate. Kept by class: a look costs the classes that wait, not the
// jobs. Pure.
#pragma once

#include <map>
#include <optional>

#include "absl/time/time.h"
#include "core/ids.h"
#include "plan/planner.h"
#include "simulate/replay.h"

namespace tp::simulate {

class GateClock {
 public:
  // After a turn, in which `planner` came to rest.
  void Look(const plan::Planner& planner, absl::Time now);
  // The step is queued since this turn. After Look.
  void Enter(plan::ClassId job_class, core::StepRef step, absl::Time now);
  // It waits no more: how long it did. Zero for one that did not Enter.
  GateTimes Leave(core::StepRef step, absl::Time now);

 private:
  struct Clock {
    std::optional<core::GateKind> at;
    absl::Time since;
    GateTimes passed{};   // up to `since`
    int64_t waiting = 0;  // steps that entered
  };
  struct Entry {
    plan::ClassId job_class = 0;
    GateTimes before{};
  };

  static void Advance(Clock& clock, absl::Time now);

  std::map<plan::ClassId, Clock> clocks_;
  std::map<core::StepRef, Entry> entries_;
};

}  // namespace tp::simulate
