// One attempt as this machine sees it: its records, the processes behind its claims, and what both
// together prove. Not thread-safe; calls about one attempt come one at a time.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "backends/local/processes.h"
#include "backends/local/rank_tool.h"
#include "backends/local/wake_watcher.h"
#include "launch/attempt_reader.h"
#include "launch/host.h"
#include "launch/storage_root.h"
#include "tp/attempt.h"
#include "tp/observation.h"

namespace tp::local {

// What all attempts of a backend share. Outlives them.
struct Machine {
  launch::HostIdentity host;
  RankTool tool;
  launch::StorageRoot storage;
  launch::ReaderOptions reader;
  WakeWatcher* watcher = nullptr;  // none: only polled
};

class TrackedAttempt {
 public:
  TrackedAttempt(const Machine& machine, const AttemptTarget& target);
  ~TrackedAttempt();

  TrackedAttempt(const TrackedAttempt&) = delete;
  TrackedAttempt& operator=(const TrackedAttempt&) = delete;

  bool IsAbout(const AttemptTarget& target) const;

  // This process has just started its ranks: they are on their way although nothing shows yet.
  void Launched();

  // Ends what a dead runner left behind, as part of finding out that it is gone.
  Observation Observe(const std::string& nonce, absl::Time deadline);

  // The claim on storage now.
  absl::StatusOr<Claim> ReadClaim(const std::string& nonce);

  // To every rank that has claimed and not ended; the first failure after all were tried.
  absl::Status Signal(StopLevel level, absl::Time deadline);

 private:
  // What is known of the process behind a rank's claim.
  struct Runner {
    bool adopted = false;  // looked for once
    bool dead = false;     // verified: the runner itself is gone
    bool gone = false;     // verified: its whole tree is, and nothing of the rank can start
    UniqueFd pidfd;        // not valid where /proc must be asked instead
    absl::Duration reap_again_at = -absl::InfiniteDuration();
  };

  Observation ObserveUnclaimed(const std::string& nonce, absl::Time deadline);
  Observation ObserveFenced() const;
  Observation ObserveOwned(const std::string& nonce, absl::Time deadline);

  bool RanHere(const launch::RankClaim& claim) const;
  bool RanBeforeReboot(const launch::RankClaim& claim) const;
  void AdoptRunners();
  void FindDeadRunners();
  absl::Status FindRanksThatCannotStart();
  absl::StatusOr<bool> LauncherIsAlive() const;
  bool AnyUnsettled() const;
  absl::Status SettleDeadRanks(absl::Time deadline);
  bool TreeIsGone(size_t index, absl::Time deadline);
  Present Describe(Claim claim) const;
  std::string ReasonOf(size_t index) const;
  std::vector<RankObservation> Ranks() const;

  const Machine& machine_;
  const AttemptTarget target_;
  launch::AttemptReader reader_;
  const launch::AttemptFiles* files_ = nullptr;  // of the last read
  std::vector<Runner> runners_;                  // as files_->ranks
  absl::Duration started_until_ = -absl::InfiniteDuration();
};

}  // namespace tp::local
