// What a reader is told of a live run: its steps, what holds each, and what would help.
#include "core/array.h"
#include "loop/loop.h"
#include "plan/hints.h"

namespace tp::loop {
namespace {

// Two queued tasks of an array for which every gate says the same.
bool JudgedAlike(const core::RunWithSteps& run, const core::Step& one, const core::Step& other, absl::Time now) {
  return one.state == core::JobState::kQueued && other.state == core::JobState::kQueued && one.hold == other.hold &&
         one.spec.profiles == other.spec.profiles && one.spec.time_limit == other.spec.time_limit &&
         one.ran == other.ran && one.cooldown_until == other.cooldown_until &&
         one.backoff_until == other.backoff_until && core::TaskIsDue(run, one, now) == core::TaskIsDue(run, other, now);
}

}  // namespace

LiveRun Loop::Describe(const core::RunWithSteps& run) const {
  LiveRun live;
  live.run = run;
  const bool array = core::IsArray(run);
  const core::Step* like = nullptr;  // the task that was judged last
  for (const core::Step& step : run.steps) {
    live.checkpoints.push_back(CheckpointsOf(step));
    live.idle_since.push_back(IdleSince(step));
    if (array && like && !quarantined_.contains(step.ref) && JudgedAlike(run, *like, step, now_)) {
      const auto at = static_cast<size_t>(like->ref.step);
      live.gates.push_back(std::vector<core::GateVerdict>(live.gates[at]));
      live.shapes.push_back(core::ResolvedShape(live.shapes[at]));
      continue;
    }
    std::string why;
    core::ResolvedShape shape = step.attempt ? step.attempt->shape : ShapeOf(step, &why);
    std::vector<core::GateVerdict> gates;
    if (step.state == core::JobState::kQueued) {
      gates = planner_.Verdicts(run, step, why.empty() ? &shape : nullptr, now_);
      like = &step;
    }
    if (auto held = QuarantineOf(step.ref)) {
      gates.insert(gates.begin(), *std::move(held));
      like = nullptr;
    }
    live.gates.push_back(std::move(gates));
    live.shapes.push_back(std::move(shape));
  }
  return live;
}

void Loop::AddHints(LiveRun& live) const {
  for (const core::Step& step : live.run.steps) {
    const bool waits = step.state == core::JobState::kQueued;
    live.hints.push_back(waits ? plan::HintsFor(planner_, live.run, step, now_) : std::vector<std::string>());
  }
}

}  // namespace tp::loop
