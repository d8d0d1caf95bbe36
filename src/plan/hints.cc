#include "plan/hints.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/gate_text.h"
#include "core/gates.h"
#include "core/resource.h"

namespace tp::plan {
namespace {

constexpr size_t kMostHints = 4;
constexpr int kMostTries = 64;  // bounded work on the loop

bool OfTheStepItself(core::GateKind gate) {
  switch (gate) {
    case core::GateKind::kDependency:
    case core::GateKind::kHeld:
    case core::GateKind::kCooldown:
    case core::GateKind::kBackend:
      return true;
    case core::GateKind::kWindow:
    case core::GateKind::kQuotaGpus:
    case core::GateKind::kQuotaSeries:
    case core::GateKind::kQuotaJobs:
    case core::GateKind::kQuotaGpuHours:
    case core::GateKind::kQuotaStorage:
    case core::GateKind::kCapacity:
    case core::GateKind::kOrder:
      return false;
  }
  return false;
}

class Trials {
 public:
  Trials(const Planner& planner, const core::RunWithSteps& run, const core::Step& step, absl::Time now)
      : planner_(planner), run_(run), step_(step), now_(now) {}

  bool spent() const { return tries_ >= kMostTries; }

  // Whether the step would start now with these flags, or with this time limit.
  bool Starts(const std::vector<std::string>& profiles, std::optional<absl::Duration> limit) {
    ++tries_;
    const auto shape = core::ResolveShape(planner_.registry(), profiles);
    if (!shape.ok()) return false;
    core::Step tried = step_;
    tried.spec.profiles = profiles;
    if (limit) tried.spec.time_limit = *limit + step_.ran;
    return planner_.Verdicts(run_, tried, &*shape, now_).empty();
  }

 private:
  const Planner& planner_;
  const core::RunWithSteps& run_;
  const core::Step& step_;
  const absl::Time now_;
  int tries_ = 0;
};

// Totals below this one that fill whole nodes or a part of one, the largest first.
std::vector<int64_t> SmallerTotals(const core::Series& series, int64_t total) {
  const int64_t whole = std::max(series.gpus_per_node, 1);
  std::vector<int64_t> totals;
  for (int64_t smaller = (total - 1) / whole * whole; smaller >= whole; smaller -= whole) totals.push_back(smaller);
  for (int64_t part = std::min(total, whole) - 1; part >= 1; --part) totals.push_back(part);
  return totals;
}

void TryFewerCards(Trials& trials, const Planner& planner, const core::PoolShape& pool, int64_t total,
                   std::vector<std::string>& hints) {
  const auto series = planner.registry().series.find(pool.series);
  if (series == planner.registry().series.end()) return;
  for (const int64_t smaller : SmallerTotals(series->second, total)) {
    if (trials.spent()) return;
    const std::string flag = fmt::format("{}:{}", pool.profile, smaller);
    if (!trials.Starts({flag}, std::nullopt)) continue;
    hints.push_back(fmt::format("{} would start now", flag));
    return;
  }
}

void TryOtherCards(Trials& trials, const Planner& planner, const core::PoolShape& pool, int64_t total,
                   std::vector<std::string>& hints) {
  const bool cpu = pool.gpus_per_node == 0;
  for (const auto& [name, profile] : planner.registry().profiles) {
    if (hints.size() >= kMostHints || trials.spent()) return;
    const auto series = planner.registry().series.find(profile.series);
    if (series == planner.registry().series.end() || profile.series == pool.series) continue;
    if ((series->second.gpus_per_node == 0) != cpu) continue;
    const std::string flag = fmt::format("{}:{}", name, total);
    if (trials.Starts({flag}, std::nullopt)) hints.push_back(fmt::format("{} would start now", flag));
  }
}

// The longest time limit with which what is ahead, or the window's end, leaves it the cards.
void TryLessTime(Trials& trials, const core::Step& step, const core::Situation& situation,
                 std::vector<std::string>& hints) {
  std::vector<absl::Duration> limits;
  if (situation.window.open && situation.window.edge) limits.push_back(*situation.window.edge - situation.now);
  for (const core::Reservation* reservation : situation.reservations) {
    limits.push_back(reservation->start - situation.now);
  }
  std::sort(limits.rbegin(), limits.rend());
  for (const absl::Duration limit : limits) {
    const absl::Duration whole = absl::Floor(limit, absl::Minutes(1));
    if (trials.spent() || whole <= absl::ZeroDuration()) return;
    if (whole >= core::RemainingLimit(step, situation.policy) || !trials.Starts(step.spec.profiles, whole)) continue;
    hints.push_back(fmt::format("a time limit of at most {} would let it start now", core::LengthText(whole)));
    return;
  }
}

// Until when the window takes it, where it is let in now and waits for something else.
void SayLatestStart(const core::Step& step, const core::Situation& situation, std::vector<std::string>& hints) {
  const auto limit = core::RemainingOwnLimit(step);
  if (!situation.window.open || !situation.window.edge) return;
  if (!core::WindowOpen(situation.schedule, situation.window, limit, situation.now)) return;
  const absl::Duration needed = core::NeededOpen(situation.schedule, situation.window, limit);
  hints.push_back(
      fmt::format("its window takes it until {}",
                  core::MomentText(*situation.window.edge - needed, situation.schedule.front().windows.front().zone)));
}

}  // namespace

std::vector<std::string> HintsFor(const Planner& planner, const core::RunWithSteps& run, const core::Step& step,
                                  absl::Time now) {
  const auto shape = core::ResolveShape(planner.registry(), step.spec.profiles);
  if (!shape.ok()) return {};
  const auto verdicts = planner.Verdicts(run, step, &*shape, now);
  const bool by_itself = std::any_of(verdicts.begin(), verdicts.end(),
                                     [](const core::GateVerdict& verdict) { return OfTheStepItself(verdict.gate); });
  if (verdicts.empty() || by_itself) return {};
  Trials trials(planner, run, step, now);
  const core::Situation situation = planner.SituationOf(run, step, *shape, now);
  std::vector<std::string> hints;
  TryLessTime(trials, step, situation, hints);
  if (shape->pools.size() == 1) {
    const core::PoolShape& pool = shape->pools.front();
    const int64_t total = pool.gpus_per_node == 0 ? pool.nodes : pool.cards();
    TryFewerCards(trials, planner, pool, total, hints);
    TryOtherCards(trials, planner, pool, total, hints);
  }
  SayLatestStart(step, situation, hints);
  if (hints.size() > kMostHints) hints.resize(kMostHints);
  return hints;
}

}  // namespace tp::plan
