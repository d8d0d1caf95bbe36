#include "simulate/gate_clock.h"

namespace tp::simulate {

void GateClock::Advance(Clock& clock, absl::Time now) {
  if (clock.at) clock.passed[static_cast<size_t>(*clock.at)] += now - clock.since;
  clock.since = now;
}

void GateClock::Look(const plan::Planner& planner, absl::Time now) {
  for (const auto& [job_class, gate] : planner.GatesOfClasses()) {
    Clock& clock = clocks_[job_class];
    if (clock.at == gate) continue;
    Advance(clock, now);
    clock.at = gate;
  }
}

void GateClock::Enter(plan::ClassId job_class, core::StepRef step, absl::Time now) {
  Clock& clock = clocks_.at(job_class);
  Advance(clock, now);
  ++clock.waiting;
  entries_[step] = {job_class, clock.passed};
}

GateTimes GateClock::Leave(core::StepRef step, absl::Time now) {
  const auto entry = entries_.find(step);
  if (entry == entries_.end()) return {};
  const auto clock = clocks_.find(entry->second.job_class);
  Advance(clock->second, now);
  GateTimes waited = clock->second.passed;
  for (size_t gate = 0; gate < waited.size(); ++gate) waited[gate] -= entry->second.before[gate];
  if (--clock->second.waiting == 0) clocks_.erase(clock);
  entries_.erase(entry);
  return waited;
}

}  // namespace tp::simulate
