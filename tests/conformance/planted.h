// Backends that break one rule of the interface each, for the suite to notice: a suite that passes over one of them
// does not hold a backend to that rule. Each wraps the fake, which keeps all rules.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/fake/fake_backend.h"
#include "tp/backend.h"

namespace tp::conformance {

enum class Bug {
  kRunsEveryLaunch,
  kClaimIsNotRead,
  kUnreachableIsAbsent,
  kUnreachableIsOver,
  kUnreachableHasNoReason,
  kAbsentIsOver,
  kForgetsAtRestart,
  kOneEndIsAll,
  kLivingIsGone,
  kGoneIsLiving,
  kNeverFreed,
  kSignalIsExitCode,
  kCodeIsLost,
  kMissingCommandIsExitCode,
  kForeignTermIsNobodys,
  kForeignTermIsTpds,
  kFenceIsAlwaysWon,
  kFenceIsAlwaysLost,
  kFenceKeepsNothingOut,
  kWarningEnds,
  kWarningIsSilent,
  kTermIsDeaf,
  kTermKills,
  kKillIsDeaf,
  kStopOfUnknownFails,
  kSecondStopFails,
  kRemoveTakesRecords,
  kSecondRemoveFails,
  kObservesOutOfOrder,
  kObservesTooFew,
  kCutsEnvironmentAtLineEnds,
  kAcceptsWhatCannotRun,
  kRendersNothing,
  kInventoryIsEmpty,
  kInventoryKeepsWhatIsOver,
  kAwayOrderIsTaken,
  kAwayLaunchIsRejected,
};

// All of them, in order.
std::vector<Bug> AllBugs();
std::string_view NameOf(Bug bug);
std::optional<Bug> BugNamed(std::string_view name);

class PlantedBackend final : public Backend {
 public:
  // The fake outlives it.
  PlantedBackend(Bug bug, fake::FakeBackend& fake) : bug_(bug), fake_(fake) {}

  Capabilities capabilities() const override { return fake_.capabilities(); }
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override { fake_.SetWake(std::move(wake)); }

  void Restart();

 private:
  bool Is(Bug bug) const { return bug_ == bug; }
  Observation Seen(const AttemptTarget& target, Observation seen) const;
  Present Seen(Present present) const;
  void Spoil(RankObservation& rank) const;

  const Bug bug_;
  fake::FakeBackend& fake_;
  std::mutex mutex_;
  std::map<std::string, std::string> launched_;  // key to nonce
  std::set<std::string> forgotten_;
  std::set<std::string> stopped_;
  std::set<std::string> removed_;
};

}  // namespace tp::conformance
