#include "backends/node/attempt_watch.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/since_boot.h"
#include "base/status.h"
#include "launch/attempt_dir.h"

namespace tp::node {
namespace {

// Exit codes of tp-rank, docs/launch-contract.md.
constexpr int kTreeGone = 0;
constexpr int kTreeNotGone = 1;
constexpr int kRunnerAlive = 6;

Claim ClaimIn(const launch::AttemptFiles& files, const std::string& nonce) {
  if (!files.claim) return Claim::kNone;
  if (files.claim->fenced) return Claim::kFenced;
  return files.claim->nonce == nonce ? Claim::kThisLaunch : Claim::kOtherLaunch;
}

Unknown UnknownBecause(const absl::Status& status) { return Unknown{std::string(Message(status))}; }

}  // namespace

AttemptWatch::AttemptWatch(const SharedStorage& storage, const AttemptTarget& target)
    : storage_(storage),
      target_(target),
      reader_(target.key, target.attempt_dir, target.ranks_per_pool, storage.reader) {}

bool AttemptWatch::IsAbout(const AttemptTarget& target) const {
  return target.attempt_dir == target_.attempt_dir && target.ranks_per_pool == target_.ranks_per_pool &&
         target.hosts == target_.hosts;
}

absl::StatusOr<Claim> AttemptWatch::ReadClaim(const std::string& nonce) {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  return ClaimIn(*files_, nonce);
}

absl::StatusOr<std::vector<AttemptWatch::Question>> AttemptWatch::Begin() {
  TP_ASSIGN_OR_RETURN(files_, reader_.Read());
  seen_.resize(files_->ranks.size());
  if (target_.hosts.size() != files_->ranks.size()) {
    return FailedPrecondition("it is not known which machines run {}", target_.key);
  }
  if (files_->fence_closed && !fence_closed_at_) fence_closed_at_ = SinceBoot();
  std::vector<Question> questions;
  if (files_->claim && files_->claim->fenced) return questions;
  for (size_t i = 0; i < seen_.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    seen_[i].reason.clear();
    seen_[i].started_elsewhere = false;
    if (rank.ended || seen_[i].gone) continue;
    if (target_.hosts[i].declared_dead) {
      LeaveToItself(i);
      continue;
    }
    Question question{.rank = i, .host = target_.hosts[i], .runner = {}, .marks = !rank.claim};
    if (rank.claim) {
      question.runner = RankQuestion{0,
                                     target_.attempt_dir,
                                     rank.pool,
                                     rank.rank,
                                     rank.claim->boot_id,
                                     rank.claim->runner_pid,
                                     rank.claim->runner_start_ticks};
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

// DESIGN 5.11: it counts as gone although nobody has seen that. Should its machine come back, the runner finds the
// fence closed at its next heartbeat and ends its tree.
void AttemptWatch::LeaveToItself(size_t rank) {
  if (!copies_) launch::CloseFence(target_.attempt_dir).IgnoreError();
  seen_[rank].gone = true;
  seen_[rank].record_awaited_since.reset();
}

Observation AttemptWatch::Judge(const std::string& nonce, const std::map<size_t, Answer>& answers) {
  switch (ClaimIn(*files_, nonce)) {
    case Claim::kNone:
      return JudgeUnclaimed(nonce, answers);
    case Claim::kFenced:
      return JudgeFenced();
    case Claim::kThisLaunch:
    case Claim::kOtherLaunch:
      return JudgeOwned(nonce, answers);
  }
  return Unknown{"the claim cannot be judged"};
}

std::optional<std::string> AttemptWatch::FirstSilence(const std::map<size_t, Answer>& answers) const {
  for (const auto& [rank, answer] : answers) {
    if (answer.silence && !seen_[rank].gone) return answer.silence->why;
  }
  return std::nullopt;
}

// Processes of a launch that are neither a runner with a claim nor a helper of one.
bool AttemptWatch::CarriesLaunch(const Answer& answer) const {
  if (answer.marks == nullptr) return false;
  std::set<int64_t> claimed;
  for (const launch::RankFiles& rank : files_->ranks) {
    // Pids of other machines are other processes, and of an earlier boot too.
    if (rank.claim && rank.claim->host == answer.facts.host && rank.claim->boot_id == answer.facts.boot_id) {
      claimed.insert(rank.claim->runner_pid);
    }
  }
  return std::any_of(answer.marks->begin(), answer.marks->end(), [&](const Mark& mark) {
    return mark.text.starts_with(target_.key + "/") && !claimed.contains(mark.pid) && !claimed.contains(mark.parent);
  });
}

bool AttemptWatch::LaunchIsUnderWay(const std::map<size_t, Answer>& answers) const {
  return std::any_of(answers.begin(), answers.end(), [this](const auto& item) { return CarriesLaunch(item.second); });
}

Observation AttemptWatch::JudgeUnclaimed(const std::string& nonce, const std::map<size_t, Answer>& answers) {
  if (const std::optional<std::string> silence = FirstSilence(answers)) return Unknown{*silence};
  // Between the first look and the last answer a rank may have claimed, run and ended.
  const absl::StatusOr<Claim> claim = ReadClaim(nonce);
  if (!claim.ok()) return UnknownBecause(claim.status());
  if (*claim != Claim::kNone) return *claim == Claim::kFenced ? JudgeFenced() : JudgeOwned(nonce, answers);
  if (const absl::Status there = storage_.root.Check(); !there.ok()) return UnknownBecause(there);
  if (!LaunchIsUnderWay(answers)) return Absent{Claim::kNone, Ranks()};
  Present present;
  present.phase = EnginePhase::kWaiting;
  present.cards_granted = true;
  present.ranks = Ranks();
  return present;
}

Observation AttemptWatch::JudgeFenced() const {
  Present present;
  present.phase = EnginePhase::kEnded;
  present.claim = Claim::kFenced;
  present.freed = true;
  present.ranks = Ranks();
  for (RankObservation& rank : present.ranks) rank.tree = Tree::kGone;
  return present;
}

// A rank that has not claimed can only start while a process of its launch lives, or while the order to launch it
// may still be on its way to the machine.
bool AttemptWatch::CannotStart(size_t rank, const Answer& answer) {
  Seen& seen = seen_[rank];
  // Where storage is not shared, a claim that was made before may be on the machine alone.
  if (answer.silence) return !copies_ && FenceHoldsForAll();
  if (CarriesLaunch(answer) || answer.marks == nullptr) return false;
  if (files_->fence_closed) return true;
  if (seen.first_boot_id.empty()) {
    seen.first_boot_id = answer.facts.boot_id;
    seen.first_uptime_s = answer.facts.uptime_s;
  }
  return seen.first_boot_id != answer.facts.boot_id ||
         answer.facts.uptime_s > seen.first_uptime_s + absl::ToDoubleSeconds(kLaunchValid);
}

// Closed for longer than a claim that was made before could stay unseen here.
bool AttemptWatch::FenceHoldsForAll() const {
  return files_->fence_closed && fence_closed_at_ && SinceBoot() - *fence_closed_at_ >= Visibility();
}

bool AttemptWatch::RanBeforeReboot(size_t rank, const HostFacts& facts) const {
  const launch::RankFiles& files = files_->ranks[rank];
  return files.claim && files.claim->host == facts.host && files.claim->boot_id != facts.boot_id;
}

bool AttemptWatch::TreeIsGone(size_t rank, const Answer& answer) {
  const launch::RankFiles& files = files_->ranks[rank];
  Seen& seen = seen_[rank];
  if (answer.silence || !answer.code) return false;
  if (RanBeforeReboot(rank, answer.facts)) return true;
  if (files.claim && files.claim->host != answer.facts.host) {
    seen.started_elsewhere = true;
    seen.reason = fmt::format("rank {}-{} was started on {}, and {} calls itself {}", files.pool, files.rank,
                              files.claim->host, target_.hosts[rank].node, answer.facts.host);
    return false;
  }
  if (*answer.code == kTreeGone) return true;
  if (*answer.code == kTreeNotGone) {
    seen.reason =
        fmt::format("rank {}-{}: its runner is gone and its processes are being ended", files.pool, files.rank);
  } else if (*answer.code != kRunnerAlive) {
    seen.reason = fmt::format("rank {}-{}: {} cannot tell whether it runs (tp-rank ended with {})", files.pool,
                              files.rank, target_.hosts[rank].node, *answer.code);
  }
  return false;
}

// A runner's record may have come between the read of the records and the look at its process, and a claim too; so
// the records are read once more, and only then does what was seen count.
Observation AttemptWatch::JudgeOwned(const std::string& nonce, const std::map<size_t, Answer>& answers) {
  std::set<size_t> gone;
  std::set<size_t> cannot_start;
  for (const auto& [rank, answer] : answers) {
    const launch::RankFiles& files = files_->ranks[rank];
    if (files.claim && TreeIsGone(rank, answer)) gone.insert(rank);
    if (!files.claim && CannotStart(rank, answer)) cannot_start.insert(rank);
  }
  if (!gone.empty() || !cannot_start.empty() || AnyAwaitsRecord()) {
    absl::StatusOr<const launch::AttemptFiles*> files = reader_.ReadFresh();
    if (!files.ok()) return UnknownBecause(files.status());
    files_ = *files;
  }
  for (const size_t rank : cannot_start) {
    if (!files_->ranks[rank].claim) gone.insert(rank);
  }
  for (const size_t rank : gone) {
    if (seen_[rank].gone) continue;
    seen_[rank].gone = true;
    if (files_->ranks[rank].claim) seen_[rank].record_awaited_since = SinceBoot();
  }
  for (const auto& [rank, answer] : answers) {
    if (answer.silence && !seen_[rank].gone && !files_->ranks[rank].ended) return Unknown{answer.silence->why};
  }
  Present present;
  present.claim = ClaimIn(*files_, nonce);
  present.cards_granted = true;
  present.ranks = Ranks();
  present.freed = std::all_of(present.ranks.begin(), present.ranks.end(),
                              [](const RankObservation& rank) { return rank.tree == Tree::kGone; });
  present.phase = present.freed ? EnginePhase::kEnded : EnginePhase::kActive;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (!target_.hosts[i].declared_dead || files_->ranks[i].ended) continue;
    present.engine_end = EngineEnd::kNodeLost;
    present.reason = fmt::format("{} was declared dead", target_.hosts[i].node);
  }
  for (size_t i = 0; i < seen_.size() && present.reason.empty(); ++i) {
    if (present.ranks[i].tree == Tree::kGone) continue;
    present.reason = AwaitsRecord(i) ? fmt::format("rank {}-{} is gone; its end record may still become visible",
                                                   files_->ranks[i].pool, files_->ranks[i].rank)
                                     : seen_[i].reason;
  }
  return present;
}

// Gone without a record, as far as this machine can see yet.
bool AttemptWatch::AwaitsRecord(size_t rank) const {
  const std::optional<absl::Duration>& since = seen_[rank].record_awaited_since;
  return since && !files_->ranks[rank].ended && SinceBoot() - *since < Visibility();
}

bool AttemptWatch::AnyAwaitsRecord() const {
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].record_awaited_since && !files_->ranks[i].ended) return true;
  }
  return false;
}

Tree AttemptWatch::TreeOf(size_t rank) const {
  const launch::RankFiles& files = files_->ranks[rank];
  if (files.ended) return Tree::kGone;
  if (seen_[rank].gone) return AwaitsRecord(rank) ? Tree::kAlive : Tree::kGone;
  return files.claim && !seen_[rank].started_elsewhere ? Tree::kAlive : Tree::kUnknown;
}

std::vector<RankObservation> AttemptWatch::Ranks() const {
  std::vector<RankObservation> ranks;
  for (size_t i = 0; i < files_->ranks.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    RankObservation seen;
    seen.pool = rank.pool;
    seen.rank = rank.rank;
    seen.started = rank.started;
    seen.ended = rank.ended;
    seen.heartbeat = rank.heartbeat;
    seen.tree = TreeOf(i);
    ranks.push_back(std::move(seen));
  }
  return ranks;
}

absl::StatusOr<std::vector<AttemptWatch::Question>> AttemptWatch::RanksToSignal() {
  TP_ASSIGN_OR_RETURN(files_, reader_.ReadFresh());
  seen_.resize(files_->ranks.size());
  std::vector<Question> ranks;
  for (size_t i = 0; i < files_->ranks.size(); ++i) {
    const launch::RankFiles& rank = files_->ranks[i];
    if (!rank.claim || rank.ended || seen_[i].gone) continue;
    if (i < target_.hosts.size() && target_.hosts[i].declared_dead) continue;
    if (target_.hosts.size() != files_->ranks.size()) {
      return FailedPrecondition("it is not known which machines run {}", target_.key);
    }
    Question question{.rank = i, .host = target_.hosts[i], .runner = {}, .marks = false};
    question.runner = RankQuestion{i, target_.attempt_dir, rank.pool, rank.rank, rank.claim->boot_id, 0, 0};
    ranks.push_back(std::move(question));
  }
  return ranks;
}

}  // namespace tp::node
