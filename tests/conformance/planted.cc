#include "tests/conformance/planted.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/status.h"

namespace tp::conformance {
namespace {

constexpr std::pair<Bug, std::string_view> kNames[] = {
    {Bug::kRunsEveryLaunch, "RunsEveryLaunch"},
    {Bug::kClaimIsNotRead, "ClaimIsNotRead"},
    {Bug::kUnreachableIsAbsent, "UnreachableIsAbsent"},
    {Bug::kUnreachableIsOver, "UnreachableIsOver"},
    {Bug::kUnreachableHasNoReason, "UnreachableHasNoReason"},
    {Bug::kAbsentIsOver, "AbsentIsOver"},
    {Bug::kForgetsAtRestart, "ForgetsAtRestart"},
    {Bug::kOneEndIsAll, "OneEndIsAll"},
    {Bug::kLivingIsGone, "LivingIsGone"},
    {Bug::kGoneIsLiving, "GoneIsLiving"},
    {Bug::kNeverFreed, "NeverFreed"},
    {Bug::kSignalIsExitCode, "SignalIsExitCode"},
    {Bug::kCodeIsLost, "CodeIsLost"},
    {Bug::kMissingCommandIsExitCode, "MissingCommandIsExitCode"},
    {Bug::kForeignTermIsNobodys, "ForeignTermIsNobodys"},
    {Bug::kForeignTermIsTpds, "ForeignTermIsTpds"},
    {Bug::kFenceIsAlwaysWon, "FenceIsAlwaysWon"},
    {Bug::kFenceIsAlwaysLost, "FenceIsAlwaysLost"},
    {Bug::kFenceKeepsNothingOut, "FenceKeepsNothingOut"},
    {Bug::kWarningEnds, "WarningEnds"},
    {Bug::kWarningIsSilent, "WarningIsSilent"},
    {Bug::kTermIsDeaf, "TermIsDeaf"},
    {Bug::kTermKills, "TermKills"},
    {Bug::kKillIsDeaf, "KillIsDeaf"},
    {Bug::kStopOfUnknownFails, "StopOfUnknownFails"},
    {Bug::kSecondStopFails, "SecondStopFails"},
    {Bug::kRemoveTakesRecords, "RemoveTakesRecords"},
    {Bug::kSecondRemoveFails, "SecondRemoveFails"},
    {Bug::kObservesOutOfOrder, "ObservesOutOfOrder"},
    {Bug::kObservesTooFew, "ObservesTooFew"},
    {Bug::kCutsEnvironmentAtLineEnds, "CutsEnvironmentAtLineEnds"},
    {Bug::kAcceptsWhatCannotRun, "AcceptsWhatCannotRun"},
    {Bug::kRendersNothing, "RendersNothing"},
    {Bug::kInventoryIsEmpty, "InventoryIsEmpty"},
    {Bug::kInventoryKeepsWhatIsOver, "InventoryKeepsWhatIsOver"},
    {Bug::kAwayOrderIsTaken, "AwayOrderIsTaken"},
    {Bug::kAwayLaunchIsRejected, "AwayLaunchIsRejected"},
};

Present Over(const std::vector<RankObservation>& ranks, Claim claim) {
  Present present;
  present.phase = EnginePhase::kEnded;
  present.claim = claim;
  present.freed = true;
  present.ranks = ranks;
  for (RankObservation& rank : present.ranks) rank.tree = Tree::kGone;
  return present;
}

}  // namespace

std::vector<Bug> AllBugs() {
  std::vector<Bug> bugs;
  for (const auto& [bug, name] : kNames) bugs.push_back(bug);
  return bugs;
}

std::string_view NameOf(Bug bug) {
  for (const auto& [each, name] : kNames) {
    if (each == bug) return name;
  }
  return "";
}

std::optional<Bug> BugNamed(std::string_view name) {
  for (const auto& [bug, each] : kNames) {
    if (each == name) return bug;
  }
  return std::nullopt;
}

absl::Status PlantedBackend::Validate(const LaunchSpec& spec) const {
  return Is(Bug::kAcceptsWhatCannotRun) ? absl::OkStatus() : fake_.Validate(spec);
}

std::string PlantedBackend::Render(const LaunchSpec& spec) const {
  return Is(Bug::kRendersNothing) ? "" : fake_.Render(spec);
}

LaunchResult PlantedBackend::Launch(const LaunchSpec& spec, absl::Time deadline) {
  LaunchSpec sent = spec;
  {
    const std::lock_guard lock(mutex_);
    const auto [first, added] = launched_.try_emplace(spec.key, spec.nonce);
    if (Is(Bug::kRunsEveryLaunch) && !added && first->second != spec.nonce) fake_.Vanish(spec.key);
  }
  if (Is(Bug::kFenceKeepsNothingOut)) fake_.Vanish(spec.key);
  if (Is(Bug::kCutsEnvironmentAtLineEnds)) {
    for (RankLaunch& rank : sent.ranks) {
      for (auto& [name, value] : rank.env) value = value.substr(0, value.find('\n'));
    }
  }
  LaunchResult result = fake_.Launch(sent, deadline);
  if (Is(Bug::kAwayLaunchIsRejected) && std::holds_alternative<LaunchIndeterminate>(result)) {
    return LaunchRejected{LaunchRejected::Kind::kEngine, "the engine does not answer"};
  }
  return result;
}

void PlantedBackend::Restart() {
  const std::lock_guard lock(mutex_);
  if (!Is(Bug::kForgetsAtRestart)) return;
  for (const auto& [key, nonce] : launched_) forgotten_.insert(key);
}

std::vector<Observation> PlantedBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) {
  std::vector<Observation> seen = fake_.Observe(targets, deadline);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < targets.size(); ++i) seen[i] = Seen(targets[i], std::move(seen[i]));
  if (Is(Bug::kObservesOutOfOrder)) std::reverse(seen.begin(), seen.end());
  if (Is(Bug::kObservesTooFew) && seen.size() > 1) seen.pop_back();
  return seen;
}

Observation PlantedBackend::Seen(const AttemptTarget& target, Observation seen) const {
  if (auto* unknown = std::get_if<Unknown>(&seen)) {
    if (Is(Bug::kUnreachableIsAbsent)) return Absent{};
    if (Is(Bug::kUnreachableIsOver)) return Over({}, Claim::kThisLaunch);
    if (Is(Bug::kUnreachableHasNoReason)) unknown->why.clear();
    return seen;
  }
  if (const auto* absent = std::get_if<Absent>(&seen)) {
    if (Is(Bug::kAbsentIsOver)) return Over(absent->ranks, absent->claim);
    return seen;
  }
  if (forgotten_.contains(target.key)) return Absent{};
  return Seen(std::get<Present>(std::move(seen)));
}

Present PlantedBackend::Seen(Present present) const {
  if (Is(Bug::kClaimIsNotRead)) present.claim = Claim::kThisLaunch;
  if (Is(Bug::kNeverFreed)) present.freed = false;
  for (RankObservation& rank : present.ranks) {
    present.freed = present.freed || (Is(Bug::kOneEndIsAll) && rank.ended);
    Spoil(rank);
  }
  return present;
}

void PlantedBackend::Spoil(RankObservation& rank) const {
  if (Is(Bug::kLivingIsGone)) rank.tree = Tree::kGone;
  if (Is(Bug::kGoneIsLiving)) rank.tree = Tree::kAlive;
  if (!rank.ended) return;
  EndRecord& end = *rank.ended;
  if (Is(Bug::kSignalIsExitCode) && end.exit == ExitKind::kKilled) {
    end.exit = ExitKind::kExited;
    end.code = 128 + end.term_signal;
  }
  if (Is(Bug::kCodeIsLost) && end.code > 0) end.code = 1;
  if (Is(Bug::kMissingCommandIsExitCode) && end.exit == ExitKind::kNotStarted) {
    end.exit = ExitKind::kExited;
    end.code = 127;
  }
  if (end.signalled_by == SignalledBy::kOther) {
    if (Is(Bug::kForeignTermIsNobodys)) end.signalled_by = SignalledBy::kNobody;
    if (Is(Bug::kForeignTermIsTpds)) end.signalled_by = SignalledBy::kTpd;
  }
}

FenceResult PlantedBackend::Fence(const AttemptTarget& target, absl::Time deadline) {
  FenceResult result = fake_.Fence(target, deadline);
  if (Is(Bug::kFenceIsAlwaysWon)) return FenceWon{};
  if (Is(Bug::kFenceIsAlwaysLost)) return FenceLost{target.nonce};
  return result;
}

absl::Status PlantedBackend::Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (Is(Bug::kStopOfUnknownFails) && !launched_.contains(target.key)) return NotFound("there is no such attempt");
    if (Is(Bug::kSecondStopFails) && !stopped_.insert(target.key).second) return NotFound("it is being stopped");
  }
  if (Is(Bug::kWarningEnds) && level == StopLevel::kWarn) level = StopLevel::kTerm;
  if (Is(Bug::kTermKills) && level == StopLevel::kTerm) level = StopLevel::kKill;
  const bool deaf = (Is(Bug::kWarningIsSilent) && level == StopLevel::kWarn) ||
                    (Is(Bug::kTermIsDeaf) && level == StopLevel::kTerm) ||
                    (Is(Bug::kKillIsDeaf) && level == StopLevel::kKill);
  const absl::Status done = deaf ? absl::OkStatus() : fake_.Stop(target, level, deadline);
  return Is(Bug::kAwayOrderIsTaken) ? absl::OkStatus() : done;
}

absl::Status PlantedBackend::Remove(const AttemptTarget& target, absl::Time deadline) {
  if (Is(Bug::kRemoveTakesRecords)) fake_.Vanish(target.key);
  const std::lock_guard lock(mutex_);
  if (Is(Bug::kSecondRemoveFails) && !removed_.insert(target.key).second) return NotFound("it is gone already");
  return fake_.Remove(target, deadline);
}

absl::StatusOr<std::vector<InventoryItem>> PlantedBackend::Inventory(absl::Time deadline) {
  if (Is(Bug::kInventoryIsEmpty)) return std::vector<InventoryItem>();
  TP_ASSIGN_OR_RETURN(std::vector<InventoryItem> items, fake_.Inventory(deadline));
  const std::lock_guard lock(mutex_);
  for (const auto& [key, nonce] : launched_) {
    if (Is(Bug::kInventoryKeepsWhatIsOver)) items.push_back({.key = key});
  }
  return items;
}

}  // namespace tp::conformance
