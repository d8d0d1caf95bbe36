// What a change of rules is to be played on (plan/what_if.h). The turn pays for the image, which grows with what
// waits and lives, and for nothing else.
#include "base/overloaded.h"
#include "loop/guarded.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

// The windows of a shape depend on nothing else.
core::ResolvedShape HoursOf(const core::ResolvedShape& shape) {
  core::ResolvedShape hours;
  for (const core::PoolShape& pool : shape.pools) {
    core::PoolShape& to = hours.pools.emplace_back();
    to.series = pool.series;
    to.profile = pool.profile;
  }
  return hours;
}

std::optional<plan::Beside> BesideOf(const core::RunWithSteps& run, const core::Step& step) {
  plan::Beside beside;
  beside.step = step.ref;
  if (step.attempt) {
    if (step.attempt->ending || step.pause.window || step.stop_requested) return std::nullopt;
    using State = plan::Beside::State;
    beside.state = step.state == core::JobState::kRunning ? State::kRunning : State::kPending;
    beside.hours = HoursOf(step.attempt->shape);
    return beside;
  }
  if (step.state != core::JobState::kPaused) return std::nullopt;
  const bool by_window = step.pause.window && run.run.snapshot_available;
  beside.state = by_window ? plan::Beside::State::kPausedByWindow : plan::Beside::State::kPaused;
  beside.profiles = step.spec.profiles;
  return beside;
}

}  // namespace

std::vector<plan::Beside> Loop::BesideQueue() const {
  std::vector<plan::Beside> all;
  for (const auto& [n, run] : runs_) {
    for (const core::Step& step : run.steps) {
      if (auto beside = BesideOf(run, step)) all.push_back(*std::move(beside));
    }
  }
  return all;
}

absl::StatusOr<WhatIfAnswer> Loop::WhatIfOf(const WhatIfQuery& query) const {
  using Registry = std::shared_ptr<const core::Registry>;
  absl::StatusOr<Edit> edit = std::visit(Overloaded{[](const Registry& registry) -> absl::StatusOr<Edit> {
                                                      Edit reload;
                                                      reload.change.registry = registry;
                                                      return reload;
                                                    },
                                                    [&](const auto& change) { return EditOf(query.who, change); }},
                                         query.proposal);
  TP_RETURN_IF_ERROR(edit.status());
  return WhatIfAnswer{
      .note = std::move(edit->note),
      .what_if = std::make_shared<const plan::WhatIf>(plan::WhatIf{
          .image = planner_.TakeImage(), .beside = BesideQueue(), .change = std::move(edit->change), .now = now_})};
}

void Loop::TakeWhatIf(WhatIfMessage& message) {
  batch_.leaving.push_back([reply = std::move(message.reply), answer = Guarded([&] {
                                                                return WhatIfOf(message.query);
                                                              })]() mutable { reply(std::move(answer)); });
}

}  // namespace tp::loop
