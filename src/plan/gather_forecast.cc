#include <algorithm>
#include <set>

#include "core/gates.h"
#include "core/reservation.h"
#include "plan/estimate.h"

namespace tp::plan {
namespace {

ForecastStep CommonOf(const core::RunWithSteps& run, const core::Step& step) {
  ForecastStep to;
  to.ref = step.ref;
  to.run_id = run.run.id();
  to.owner = run.run.owner;
  to.priority = run.run.priority;
  to.submitted = run.run.created_at;
  to.profiles = step.spec.profiles;
  to.avoid_node = step.avoid_node;
  to.limit = core::RemainingOwnLimit(step);
  return to;
}

const core::Step* StepOf(const core::RunWithSteps* run, core::StepRef ref) {
  const auto index = static_cast<size_t>(ref.step);
  return run != nullptr && ref.step >= 0 && index < run->steps.size() ? &run->steps[index] : nullptr;
}

// What is being ended frees its cards soon, whatever its limit is.
std::optional<absl::Time> FreesAt(const core::Step& step, absl::Time counted_end, const core::Policy& policy,
                                  absl::Time now) {
  if (step.attempt->ending) return std::min(counted_end, now + policy.stop_grace);
  return step.spec.time_limit ? std::optional(counted_end) : std::nullopt;
}

void AddOwners(const std::vector<ForecastStep>& steps, std::set<std::string>& owners) {
  for (const ForecastStep& step : steps) owners.insert(step.owner);
}

void AddQuota(const Planner& planner, const std::set<std::string>& owners, ForecastInput& input) {
  for (const std::string& owner : owners) {
    input.use.emplace(owner, planner.usage().UseOf(owner, input.now));
    const auto rules = planner.quotas().rules().find(owner);
    if (rules == planner.quotas().rules().end()) continue;
    input.quota_rules.insert(input.quota_rules.end(), rules->second.begin(), rules->second.end());
  }
}

}  // namespace

ForecastInput GatherForecast(const Planner& planner, const FindRun& find, const std::vector<core::StepRef>& waiting,
                             const std::vector<core::StepRef>& paused, absl::Time now) {
  ForecastInput input;
  input.now = now;
  input.policy = planner.policy();
  input.accounting_zone = planner.accounting_zone();
  input.registry = planner.shared_registry();
  for (const auto& [ref, occupant] : planner.occupants().all()) {
    const core::RunWithSteps* run = find(ref.run);
    const core::Step* step = StepOf(run, ref);
    if (step == nullptr || !step->attempt) continue;
    ForecastStep& to = input.holding.emplace_back(CommonOf(*run, *step));
    to.placement = step->attempt->placement;
    to.counted_end = occupant.ends;
    to.frees_at = FreesAt(*step, occupant.ends, planner.policy(), now);
    if (to.limit) to.limit = std::max(absl::ZeroDuration(), occupant.ends - now);
  }
  for (const core::StepRef ref : waiting) {
    const core::RunWithSteps* run = find(ref.run);
    const core::Step* step = StepOf(run, ref);
    if (step == nullptr || step->state != core::JobState::kQueued) continue;
    ForecastStep& to = input.waiting.emplace_back(CommonOf(*run, *step));
    to.opens_at = core::OwnGatesOpenAt(*run, *step, now);
    to.held = step->hold.owner || step->hold.admin;
  }
  for (const core::StepRef ref : paused) {
    const core::RunWithSteps* run = find(ref.run);
    const core::Step* step = StepOf(run, ref);
    if (step == nullptr || step->state != core::JobState::kPaused) continue;
    if (step->pause.owner || step->pause.admin || !step->pause.window) continue;
    input.paused.emplace_back(CommonOf(*run, *step)).opens_at = step->entered_at + planner.policy().min_flip;
  }
  std::set<std::string> owners;
  AddOwners(input.holding, owners);
  AddOwners(input.waiting, owners);
  AddOwners(input.paused, owners);
  AddQuota(planner, owners, input);
  input.held_open = planner.held_open();
  input.shares = planner.shares();
  return input;
}

}  // namespace tp::plan
