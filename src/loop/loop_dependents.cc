// What waits for something else of the same deployment: steps for steps of their run, runs for other runs,
// an array's tasks for their turn.
#include <fmt/format.h>

#include "base/status.h"
#include "core/array.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

bool Waits(const core::Step& step) {
  return step.state == core::JobState::kQueued || step.state == core::JobState::kPaused;
}

bool HasStarted(const core::RunWithSteps& run) {
  for (const core::Step& step : run.steps) {
    if (step.attempts > 0) return true;
  }
  return false;
}

}  // namespace

// Their turn has come, or is over again: a step that ended may be retried.
void Loop::FollowDependents(const core::RunWithSteps& run, const core::Step& step) {
  for (const core::Step& other : run.steps) {
    if (other.spec.after && other.spec.after->step == step.ref.step) planner_.Follow(run, other, now_);
  }
  for (const int32_t task : core::TasksAtTheEdge(run, now_)) {
    planner_.Follow(run, run.steps[static_cast<size_t>(task)], now_);
  }
}

// Steps whose turn can never come stop.
void Loop::AfterStepEnded(core::RunWithSteps& run) {
  for (core::Step& step : run.steps) {
    if (!Waits(step)) continue;
    const std::string why = core::WhyNever(run, step);
    if (!why.empty()) Deliver(step.ref, core::DependencyFailed{why});
  }
}

// --- Between runs -----------------------------------------------------------------------------------

absl::StatusOr<std::vector<core::RunDependency>> Loop::DependenciesOf(const std::vector<AfterRun>& after) const {
  std::vector<core::RunDependency> dependencies;
  for (const AfterRun& other : after) {
    TP_ASSIGN_OR_RETURN(const std::optional<core::RunWord> outcome, OutcomeOf(other.stored));
    core::RunDependency& added = dependencies.emplace_back();
    added.run = other.stored.run.n;
    added.id = other.stored.run.id();
    added.when = other.when;
    added.outcome = outcome;
  }
  return dependencies;
}

// How a run ended; nothing: it is not over. UNAVAILABLE: what is stored is no longer so.
absl::StatusOr<std::optional<core::RunWord>> Loop::OutcomeOf(const core::RunWithSteps& stored) const {
  TP_RETURN_IF_ERROR(CheckStored(stored));
  const auto live = runs_.find(stored.run.n);
  const core::RunWord word = core::RollUp(live != runs_.end() ? live->second.steps : stored.steps);
  return core::IsTerminal(word) ? std::optional<core::RunWord>(word) : std::nullopt;
}

// A run that never started waits for what the others are now: they may have been retried since it was stopped.
absl::Status Loop::LookAgain(core::RunWithSteps& run, const std::vector<core::RunWithSteps>& after) const {
  if (HasStarted(run)) return absl::OkStatus();
  for (core::RunDependency& dependency : run.run.after) {
    for (const core::RunWithSteps& stored : after) {
      if (stored.run.n != dependency.run) continue;
      TP_ASSIGN_OR_RETURN(dependency.outcome, OutcomeOf(stored));
    }
  }
  const std::string never = core::WhyNever(run, run.steps.front());
  return never.empty() ? absl::OkStatus() : FailedPrecondition("{}: retry that one first", never);
}

void Loop::IndexDependencies(const core::RunWithSteps& run) {
  for (const core::RunDependency& other : run.run.after) dependents_[other.run].insert(run.run.n);
}

void Loop::ForgetDependencies(const core::RunWithSteps& run) {
  for (const core::RunDependency& other : run.run.after) {
    const auto found = dependents_.find(other.run);
    if (found == dependents_.end()) continue;
    found->second.erase(run.run.n);
    if (found->second.empty()) dependents_.erase(found);
  }
}

// Not at once but once a turn: a run that waits for one that waits for another makes no deep stack.
void Loop::TellDependents() {
  while (!turned_runs_.empty()) {
    const int64_t n = *turned_runs_.begin();
    turned_runs_.erase(turned_runs_.begin());
    const auto run = runs_.find(n);
    const auto dependents = dependents_.find(n);
    if (run == runs_.end() || dependents == dependents_.end()) continue;
    const core::RunWord word = core::RollUp(run->second.steps);
    const auto outcome = core::IsTerminal(word) ? std::optional<core::RunWord>(word) : std::nullopt;
    for (const int64_t dependent : std::set<int64_t>(dependents->second)) {
      if (const auto found = runs_.find(dependent); found != runs_.end()) TellDependent(found->second, n, outcome);
    }
  }
}

// What has started has no more to do with the other: not when that is retried, nor with how it ends then.
void Loop::TellDependent(core::RunWithSteps& run, int64_t other, std::optional<core::RunWord> outcome) {
  if (HasStarted(run)) return;
  std::string news;
  for (core::RunDependency& dependency : run.run.after) {
    if (dependency.run != other || dependency.outcome == outcome) continue;
    dependency.outcome = outcome;
    news = fmt::format("{} {}", dependency.id, outcome ? fmt::format("ended {}", core::Name(*outcome)) : "runs again");
  }
  if (news.empty()) return;
  batch_.runs.insert(run.run.n);
  // Whoever follows the events learns that the run waits for less, or more.
  Log(run.steps.front(), "dependency", run.steps.front().state, run.steps.front().state, std::move(news));
  AfterStepEnded(run);
  for (const core::Step& step : run.steps) {
    if (Waits(step) && !step.spec.after) planner_.Follow(run, step, now_);
  }
}

}  // namespace tp::loop
