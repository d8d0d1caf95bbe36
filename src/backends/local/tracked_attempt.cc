#include "backends/local/tracked_attempt.h"

#include <poll.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/since_boot.h"
#include "base/status.h"

namespace tp::local {
namespace {

// A tree that does not die at once must not hold up the observation of others.
constexpr absl::Duration kReapLimit = absl::Milliseconds(500);
constexpr absl::Duration kReapAgainAfter = absl::Seconds(1);
// Ranks claim within milliseconds of their launch. Until then /proc, which is as long as the machine is
// busy, is not searched for them.
constexpr absl::Duration kClaimSoon = absl::Seconds(2);

Claim ClaimOf(const launch::AttemptFiles& files, const std::string& nonce) {
  if (!files.claim) return Claim::kNone;
  if (files.claim->fenced) return Claim::kFenced;
  return files.claim->nonce == nonce ? Claim::kThisLaunch : Claim::kOtherLaunch;
}

Unknown UnknownOf(const absl::Status& status) { return Unknown{std::string(Message(status))}; }

}  // namespace

TrackedAttempt::TrackedAttempt(const Machine& machine, const AttemptTarget& target)
    : machine_(machine),
      target_(target),
      reader_(target.key, target.attempt_dir, target.ranks_per_pool, machine.reader) {
  if (machine_.watcher != nullptr) machine_.watcher->WatchDirectory(target_.key, target_.attempt_dir);
}

TrackedAttempt::~TrackedAttempt() {
  if (machine_.watcher != nullptr) machine_.watcher->Forget(target_.key);
}

bool TrackedAttempt::IsAbout(const AttemptTarget& target) const {
  return target.attempt_dir == target_.attempt_dir && target.ranks_per_pool == target_.ranks_per_pool;
}

absl::StatusOr<Claim> TrackedAttempt::ReadClaim(const std::string& nonce) {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  return ClaimOf(*files_, nonce);
}

Observation TrackedAttempt::Observe(const std::string& nonce, absl::Time deadline) {
  if (machine_.watcher != nullptr) machine_.watcher->WatchDirectory(target_.key, target_.attempt_dir);
  absl::StatusOr<const launch::AttemptFiles*> files = reader_.Read();
  if (!files.ok()) return UnknownOf(files.status());
  files_ = *files;
  runners_.resize(files_->ranks.size());
  switch (ClaimOf(*files_, nonce)) {
    case Claim::kNone:
      return ObserveUnclaimed(nonce, deadline);
    case Claim::kFenced:
      return ObserveFenced();
    case Claim::kThisLaunch:
    case Claim::kOtherLaunch:
      return ObserveOwned(nonce, deadline);
  }
  return Unknown{"the claim cannot be judged"};
}

Observation TrackedAttempt::ObserveUnclaimed(const std::string& nonce, absl::Time deadline) {
  const absl::StatusOr<bool> launching = LauncherIsAlive();
  if (!launching.ok()) return UnknownOf(launching.status());
  // Between the first look and the last process a rank may have claimed, run and ended.
  const absl::StatusOr<Claim> claim = ReadClaim(nonce);
  if (!claim.ok()) return UnknownOf(claim.status());
  if (*claim != Claim::kNone) return *claim == Claim::kFenced ? ObserveFenced() : ObserveOwned(nonce, deadline);
  if (const absl::Status there = machine_.storage.Check(); !there.ok()) return UnknownOf(there);
  if (!*launching) return Absent{Claim::kNone, Ranks()};
  Present present;
  present.phase = EnginePhase::kWaiting;
  present.cards_granted = true;
  present.ranks = Ranks();
  return present;
}

Observation TrackedAttempt::ObserveFenced() const {
  Present present;
  present.phase = EnginePhase::kEnded;
  present.claim = Claim::kFenced;
  present.freed = true;
  present.ranks = Ranks();
  for (RankObservation& rank : present.ranks) rank.tree = Tree::kGone;
  return present;
}

Observation TrackedAttempt::ObserveOwned(const std::string& nonce, absl::Time deadline) {
  AdoptRunners();
  FindDeadRunners();
  absl::Status status = FindRanksThatCannotStart();
  if (status.ok() && AnyUnsettled()) status = SettleDeadRanks(deadline);
  if (!status.ok()) return UnknownOf(status);
  return Describe(ClaimOf(*files_, nonce));
}

bool TrackedAttempt::RanHere(const launch::RankClaim& claim) const {
  return claim.host == machine_.host.host && claim.boot_id == machine_.host.boot_id;
}

bool TrackedAttempt::RanBeforeReboot(const launch::RankClaim& claim) const {
  return claim.host == machine_.host.host && claim.boot_id != machine_.host.boot_id;
}

void TrackedAttempt::AdoptRunners() {
  for (size_t i = 0; i < runners_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    Runner& runner = runners_[i];
    if (runner.adopted || !rank.claim || rank.ended) continue;
    runner.adopted = true;
    if (!RanHere(*rank.claim)) continue;
    runner.pidfd = OpenProcess(static_cast<pid_t>(rank.claim->runner_pid), rank.claim->runner_start_ticks);
    if (runner.pidfd.valid() && machine_.watcher != nullptr) {
      machine_.watcher->WatchProcess(target_.key, runner.pidfd.get());
    }
  }
}

// One system call for all runners that have a descriptor.
void TrackedAttempt::FindDeadRunners() {
  std::vector<pollfd> polls;
  std::vector<size_t> polled;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    Runner& runner = runners_[i];
    if (rank.ended) runner.pidfd.reset();  // its record says that the tree is gone; its exit is no news
    if (!rank.claim || rank.ended || runner.dead) continue;
    if (runner.pidfd.valid()) {
      polls.push_back({runner.pidfd.get(), POLLIN, 0});
      polled.push_back(i);
    } else if (RanHere(*rank.claim)) {
      runner.dead = !IsAlive(static_cast<pid_t>(rank.claim->runner_pid), rank.claim->runner_start_ticks);
    } else {
      runner.dead = RanBeforeReboot(*rank.claim);
    }
  }
  if (polls.empty() || poll(polls.data(), polls.size(), 0) <= 0) return;
  for (size_t i = 0; i < polls.size(); ++i) {
    Runner& runner = runners_[polled[i]];
    runner.dead = polls[i].revents != 0;
    if (runner.dead) runner.pidfd.reset();
  }
}

// A rank that has not claimed can only start while a process of its launch lives and the fence is open.
absl::Status TrackedAttempt::FindRanksThatCannotStart() {
  const auto waits = [this](size_t i) {
    return !files_->ranks[i].claim && !files_->ranks[i].ended && !runners_[i].dead;
  };
  bool any_waits = false;
  for (size_t i = 0; i < runners_.size(); ++i) any_waits = any_waits || waits(i);
  if (!any_waits) return absl::OkStatus();
  bool can_start = false;
  if (!files_->fence_closed) {
    TP_ASSIGN_OR_RETURN(can_start, LauncherIsAlive());
  }
  if (can_start) return absl::OkStatus();
  for (size_t i = 0; i < runners_.size(); ++i) runners_[i].dead = runners_[i].dead || waits(i);
  return absl::OkStatus();
}

void TrackedAttempt::Launched() { started_until_ = SinceBoot() + kClaimSoon; }

// Processes of a launch that are neither a runner with a claim nor a helper of one.
absl::StatusOr<bool> TrackedAttempt::LauncherIsAlive() const {
  if (SinceBoot() < started_until_) return true;
  TP_ASSIGN_OR_RETURN(const std::vector<MarkedProcess> launched,
                      FindMarkedProcesses(fmt::format("{}{}/", kLaunchMark, target_.key)));
  std::set<pid_t> claimed;
  for (const launch::RankFiles& rank : files_->ranks) {
    if (rank.claim) claimed.insert(static_cast<pid_t>(rank.claim->runner_pid));
  }
  return std::any_of(launched.begin(), launched.end(), [&claimed](const MarkedProcess& process) {
    return !claimed.contains(process.stat.pid) && !claimed.contains(process.stat.parent);
  });
}

bool TrackedAttempt::AnyUnsettled() const {
  for (size_t i = 0; i < runners_.size(); ++i) {
    if (runners_[i].dead && !runners_[i].gone && !files_->ranks[i].ended) return true;
  }
  return false;
}

// A runner's record may have come between the read of the records and the look at its process, and a
// claim too; so the records are read once more after each step.
absl::Status TrackedAttempt::SettleDeadRanks(absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  AdoptRunners();
  bool any_gone = false;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    Runner& runner = runners_[i];
    if (!runner.dead || runner.gone || rank.ended) continue;
    if (rank.claim && runner.pidfd.valid()) {
      runner.dead = false;  // the claim came late and its runner lives
      continue;
    }
    runner.gone = TreeIsGone(i, deadline);
    any_gone = any_gone || runner.gone;
  }
  if (!any_gone) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  return absl::OkStatus();
}

bool TrackedAttempt::TreeIsGone(size_t index, absl::Time deadline) {
  const launch::RankFiles& rank = files_->ranks[index];
  Runner& runner = runners_[index];
  if (!rank.claim || RanBeforeReboot(*rank.claim)) return true;
  const absl::Duration now = SinceBoot();
  if (now < runner.reap_again_at) return false;
  runner.reap_again_at = now + kReapAgainAfter;
  switch (machine_.tool.Reap(target_.attempt_dir, rank.pool, rank.rank, std::min(deadline, absl::Now() + kReapLimit))) {
    case RankTool::Reaped::kGone:
      return true;
    case RankTool::Reaped::kRunnerAlive:
      runner.dead = false;
      return false;
    case RankTool::Reaped::kNotGone:
    case RankTool::Reaped::kUndecided:
      return false;
  }
  return false;
}

std::vector<RankObservation> TrackedAttempt::Ranks() const {
  std::vector<RankObservation> ranks;
  for (size_t i = 0; i < files_->ranks.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    RankObservation seen;
    seen.pool = rank.pool;
    seen.rank = rank.rank;
    seen.started = rank.started;
    seen.ended = rank.ended;
    seen.heartbeat = rank.heartbeat;
    if (rank.ended || runners_[i].gone) {
      seen.tree = Tree::kGone;
    } else if (rank.claim && (RanHere(*rank.claim) || runners_[i].dead)) {
      seen.tree = Tree::kAlive;
    }
    ranks.push_back(std::move(seen));
  }
  return ranks;
}

Present TrackedAttempt::Describe(Claim claim) const {
  Present present;
  present.claim = claim;
  present.cards_granted = true;
  present.ranks = Ranks();
  present.freed = std::all_of(present.ranks.begin(), present.ranks.end(),
                              [](const RankObservation& rank) { return rank.tree == Tree::kGone; });
  present.phase = present.freed ? EnginePhase::kEnded : EnginePhase::kActive;
  for (size_t i = 0; i < runners_.size() && present.reason.empty(); ++i) present.reason = ReasonOf(i);
  return present;
}

std::string TrackedAttempt::ReasonOf(size_t index) const {
  const launch::RankFiles& rank = files_->ranks[index];
  const Runner& runner = runners_[index];
  if (rank.ended || runner.gone || !rank.claim) return "";
  if (runner.dead) {
    return fmt::format("rank {}-{}: its runner is gone and its processes are being ended", rank.pool, rank.rank);
  }
  if (RanHere(*rank.claim)) return "";
  return fmt::format("rank {}-{} was started on {}, and this is {}", rank.pool, rank.rank, rank.claim->host,
                     machine_.host.host);
}

absl::Status TrackedAttempt::Signal(StopLevel level, absl::Time deadline) {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  absl::Status first;
  for (const launch::RankFiles& rank : files_->ranks) {
    if (!rank.claim || rank.ended || RanBeforeReboot(*rank.claim)) continue;
    first.Update(machine_.tool.Signal(target_.attempt_dir, rank.pool, rank.rank, level, deadline));
  }
  return first;
}

}  // namespace tp::local
