// Which queued steps launch now: what the planner starts, admitted one by one.
#include "base/status.h"
#include "core/array.h"
#include "core/resource.h"
#include "loop/guarded.h"
#include "loop/loop.h"

namespace tp::loop {

void Loop::Plan() {
  planner_.BeginTurn(now_);
  NoteShapes();
  for (int launched = 0; launched < settings_.max_launches_per_turn; ++launched) {
    absl::StatusOr<std::optional<plan::Start>> start =
        Guarded([&] { return absl::StatusOr<std::optional<plan::Start>>(planner_.Next()); });
    if (start.ok() && !start->has_value()) return;
    if (start.ok() && TurnIsOver((*start)->step)) continue;
    const std::optional<core::StepRef> ref = start.ok() ? (*start)->step : planner_.judging();
    if (ref && quarantined_.contains(*ref)) {
      planner_.SetAside(*ref);
      continue;
    }
    const absl::Status status =
        start.ok() ? Guarded([&] { return Admit(**std::move(start)); }) : std::move(start).status();
    if (status.ok()) continue;
    if (!ref) return;
    planner_.SetAside(*ref);  // nobody waits behind it
    Quarantine(*ref, status);
  }
}

// A task's own cooldown may have ended since another took its turn: it waits again.
bool Loop::TurnIsOver(core::StepRef ref) {
  const core::Step* step = FindStep(ref);
  if (!step || core::TaskIsDue(runs_.at(ref.run), *step, now_)) return false;
  planner_.Follow(runs_.at(ref.run), *step, now_);
  return true;
}

void Loop::TakeForecast(ForecastMessage& message) {
  const auto find = [this](int64_t n) -> const core::RunWithSteps* {
    const auto run = runs_.find(n);
    return run == runs_.end() ? nullptr : &run->second;
  };
  std::vector<core::StepRef> by_windows;
  for (const auto& [ref, at] : window_timers_.all()) by_windows.push_back(ref);
  auto input = std::make_shared<const plan::ForecastInput>(
      plan::GatherForecast(planner_, find, message.query.waiting, by_windows, now_));
  batch_.leaving.push_back(
      [reply = std::move(message.reply), input = std::move(input)]() mutable { reply(std::move(input)); });
}

core::ResolvedShape Loop::ShapeOf(const core::Step& step, std::string* why) const {
  absl::StatusOr<core::ResolvedShape> shape = core::ResolveShape(*registry_, step.spec.profiles);
  if (shape.ok()) return *std::move(shape);
  *why = std::string(Message(shape.status()));
  return {};
}

// Whose shape resolves no more, or again.
void Loop::NoteShapes() {
  for (const plan::ShapeChange& change : planner_.TakeShapeChanges()) {
    core::Step* step = FindStep(change.step);
    if (!step || step->hold.shape == change.why_not) continue;
    step->hold.shape = change.why_not;
    batch_.steps.insert(step->ref);
    const bool valid = change.why_not.empty();
    Log(*step, valid ? "shape released" : "shape held", step->state, step->state,
        valid ? "its shape is valid again" : fmt::format("its shape is no longer valid: {}", change.why_not));
    Reindex(runs_.at(step->ref.run), *step);
  }
}

absl::Status Loop::Admit(plan::Start start) {
  const core::Step* step = FindStep(start.step);
  if (!step) return Internal("step {} of run {} is not there", start.step.step, start.step.run);
  core::Admitted admitted;
  admitted.key = core::AttemptKey(settings_.deployment, {step->ref, step->attempts + 1});
  admitted.nonce = nonce_();
  admitted.shape = std::move(start.shape);
  admitted.placement = std::move(start.placement);
  return ApplyTo(start.step, admitted);
}

}  // namespace tp::loop
