#include "backends/fake/fake_backend.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status.h"

namespace tp::fake {
namespace {

constexpr char kHost[] = "fake-host";
constexpr char kBootId[] = "fake-boot";

int ParseValue(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

tp::Claim ClaimOf(const std::optional<std::string>& owner, bool fenced, const std::string& nonce) {
  if (fenced) return tp::Claim::kFenced;
  if (!owner) return tp::Claim::kNone;
  return *owner == nonce ? tp::Claim::kThisLaunch : tp::Claim::kOtherLaunch;
}

}  // namespace

FakeBackend::FakeBackend(std::function<absl::Time()> now, Capabilities capabilities)
    : now_(std::move(now)), capabilities_(capabilities) {}

absl::Status FakeBackend::Validate(const LaunchSpec& spec) const {
  if (spec.argv.empty()) return InvalidArgument("argv: there is no command to run");
  if (spec.ranks.empty()) return InvalidArgument("ranks: there is no rank to run it");
  return absl::OkStatus();
}

std::string FakeBackend::Render(const LaunchSpec& spec) const {
  return fmt::format("{} {} x{}: {}\n", spec.key, spec.executor, spec.ranks.size(), fmt::join(spec.argv, " "));
}

FakeBackend::Program FakeBackend::ParseProgram(const LaunchSpec& spec, const RankLaunch& rank) {
  if (!spec.argv.empty() && spec.argv[0].starts_with("/no/such")) return {ProgramKind::kMissing, 0};
  const auto found = rank.env.find(kProgramVariable);
  if (found == rank.env.end()) return {};
  const std::string_view text = found->second;
  const size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  const int value = space == std::string_view::npos ? 0 : ParseValue(text.substr(space + 1));
  if (word == "exit") return {ProgramKind::kExit, value};
  if (word == "raise") return {ProgramKind::kRaise, value};
  if (word == "trap") return {ProgramKind::kTrap, value};
  if (word == "missing") return {ProgramKind::kMissing, 0};
  if (word == "claim") return {ProgramKind::kClaim, 0};
  if (word == "queue") return {ProgramKind::kQueue, 0};
  return {};
}

FakeBackend::Attempt& FakeBackend::Ensure(const AttemptTarget& target) {
  const auto [found, added] = attempts_.try_emplace(target.key);
  if (added) {
    for (size_t pool = 0; pool < target.ranks_per_pool.size(); ++pool) {
      for (int rank = 0; rank < target.ranks_per_pool[pool]; ++rank) {
        Rank& made = found->second.ranks.emplace_back();
        made.seen.pool = static_cast<int>(pool);
        made.seen.rank = rank;
      }
    }
  }
  return found->second;
}

FakeBackend::Rank* FakeBackend::Find(const std::string& key, int pool, int rank) {
  return const_cast<Rank*>(std::as_const(*this).Find(key, pool, rank));
}

const FakeBackend::Rank* FakeBackend::Find(const std::string& key, int pool, int rank) const {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return nullptr;
  for (const Rank& candidate : found->second.ranks) {
    if (candidate.seen.pool == pool && candidate.seen.rank == rank) return &candidate;
  }
  return nullptr;
}

LaunchResult FakeBackend::Launch(const LaunchSpec& spec, absl::Time) {
  LaunchScript script;
  {
    const std::lock_guard lock(mutex_);
    if (unreachable_) return LaunchIndeterminate{*unreachable_};
    if (const absl::Status status = Validate(spec); !status.ok()) {
      return LaunchRejected{LaunchRejected::Kind::kEngine, std::string(Message(status))};
    }
    if (const auto found = scripts_.find(spec.key); found != scripts_.end()) {
      script = std::move(found->second);
      scripts_.erase(found);
    }
    AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {}};
    for (const RankLaunch& rank : spec.ranks) {
      target.ranks_per_pool.resize(static_cast<size_t>(rank.pool) + 1);
      ++target.ranks_per_pool.back();
    }
    Attempt& attempt = Ensure(target);
    ++attempt.launches;
    if (attempt.fenced) return LaunchRefused{fmt::format("{} was fenced before its launch", spec.key)};
    if (script.arrives) Arrive(attempt, spec);
  }
  Wake(spec.key);
  return script.answer;
}

void FakeBackend::Arrive(Attempt& attempt, const LaunchSpec& spec) {
  if (attempt.owner || attempt.queued) return;  // the ranks of another launch call leave at once
  attempt.removed = false;
  for (size_t i = 0; i < spec.ranks.size() && i < attempt.ranks.size(); ++i) {
    attempt.ranks[i].program = ParseProgram(spec, spec.ranks[i]);
    attempt.ranks[i].env = spec.ranks[i].env;
    attempt.queued = attempt.queued || attempt.ranks[i].program.kind == ProgramKind::kQueue;
  }
  attempt.queued_nonce = spec.nonce;
  if (!attempt.queued) Claim(attempt, spec.nonce);
}

void FakeBackend::Claim(Attempt& attempt, const std::string& nonce) {
  attempt.owner = nonce;
  for (Rank& rank : attempt.ranks) {
    rank.claimed = true;
    if (!attempt.fence_closed) Start(rank, nonce);
  }
}

void FakeBackend::Start(Rank& rank, const std::string& nonce) {
  if (rank.program.kind == ProgramKind::kClaim) return;
  rank.running = true;
  if (rank.program.kind == ProgramKind::kMissing) {
    End(rank, ExitKind::kNotStarted, 0);
    return;
  }
  rank.seen.started = StartRecord{nonce, Stamp(), 0};
  rank.seen.heartbeat = Heartbeat{1, Stamp()};
  rank.ran.push_back(nonce);
  if (rank.program.kind == ProgramKind::kExit) End(rank, ExitKind::kExited, rank.program.value);
  if (rank.program.kind == ProgramKind::kRaise) End(rank, ExitKind::kKilled, rank.program.value);
}

void FakeBackend::End(Rank& rank, ExitKind exit, int value) {
  if (!rank.running) return;
  rank.running = false;
  EndRecord record;
  record.nonce = rank.seen.started ? rank.seen.started->nonce : "";
  record.at = Stamp();
  record.exit = exit;
  record.code = exit == ExitKind::kExited ? value : -1;
  record.term_signal = exit == ExitKind::kKilled ? value : 0;
  if (exit == ExitKind::kNotStarted) record.start_error = "ENOENT";
  record.signalled_by = rank.signalled_by;
  rank.seen.ended = record;
}

void FakeBackend::DieOfKill(Rank& rank) {
  if (rank.program.kind == ProgramKind::kClaim && rank.claimed) rank.lost = true;
  End(rank, ExitKind::kKilled, SIGKILL);
}

HostStamp FakeBackend::Stamp() const {
  const int64_t unix_us = absl::ToUnixMicros(now_());
  return {kHost, kBootId, unix_us, unix_us};
}

std::vector<Observation> FakeBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time) {
  const std::lock_guard lock(mutex_);
  std::vector<Observation> observations;
  for (const AttemptTarget& target : targets) {
    const auto found = attempts_.find(target.key);
    if (unreachable_) {
      observations.emplace_back(Unknown{*unreachable_});
    } else {
      observations.push_back(Describe(found == attempts_.end() ? Attempt{} : found->second, target));
    }
  }
  return observations;
}

bool FakeBackend::IsGone(const Attempt& attempt, const Rank& rank) {
  if (attempt.fenced || rank.seen.ended || rank.lost) return true;
  return !rank.claimed && attempt.fence_closed;
}

Observation FakeBackend::Describe(const Attempt& attempt, const AttemptTarget& target) const {
  std::vector<RankObservation> ranks;
  bool freed = true;
  for (const Rank& rank : attempt.ranks) {
    RankObservation seen = rank.seen;
    seen.tree = IsGone(attempt, rank) ? Tree::kGone : (rank.claimed ? Tree::kAlive : Tree::kUnknown);
    freed = freed && seen.tree == Tree::kGone;
    ranks.push_back(std::move(seen));
  }
  const tp::Claim claim = ClaimOf(attempt.owner, attempt.fenced, target.nonce);
  if (claim == tp::Claim::kNone && !attempt.queued) return Absent{claim, std::move(ranks)};
  Present present;
  present.claim = claim;
  present.cards_granted = claim != tp::Claim::kNone;
  present.freed = freed;
  present.phase = EnginePhase::kActive;
  if (claim == tp::Claim::kNone) present.phase = EnginePhase::kWaiting;
  if (freed) present.phase = EnginePhase::kEnded;
  present.ranks = std::move(ranks);
  present.engine_end = attempt.engine_end;
  present.reason = attempt.reason;
  return present;
}

FenceResult FakeBackend::Fence(const AttemptTarget& target, absl::Time) {
  const std::lock_guard lock(mutex_);
  if (unreachable_) return FenceFailed{*unreachable_};
  Attempt& attempt = Ensure(target);
  if (attempt.owner) return FenceLost{*attempt.owner};
  attempt.fenced = true;
  attempt.queued = false;
  return FenceWon{};
}

absl::Status FakeBackend::Stop(const AttemptTarget& target, StopLevel level, absl::Time) {
  {
    const std::lock_guard lock(mutex_);
    if (unreachable_) return Unavailable("{}", *unreachable_);
    const auto found = attempts_.find(target.key);
    if (found == attempts_.end()) return absl::OkStatus();
    Attempt& attempt = found->second;
    attempt.stops.push_back(level);
    attempt.fence_closed = attempt.fence_closed || level == StopLevel::kKill;
    for (Rank& rank : attempt.ranks) {
      if (!rank.claimed || rank.seen.ended || rank.lost) continue;
      if (level != StopLevel::kKill && rank.signalled_by == SignalledBy::kNobody) rank.signalled_by = SignalledBy::kTpd;
      switch (level) {
        case StopLevel::kWarn:
          break;
        case StopLevel::kTerm:
          if (rank.program.kind == ProgramKind::kTrap) {
            End(rank, ExitKind::kExited, rank.program.value);
          } else {
            End(rank, ExitKind::kKilled, SIGTERM);
          }
          break;
        case StopLevel::kKill:
          DieOfKill(rank);
          break;
      }
    }
  }
  Wake(target.key);
  return absl::OkStatus();
}

absl::Status FakeBackend::Remove(const AttemptTarget& target, absl::Time) {
  const std::lock_guard lock(mutex_);
  if (unreachable_) return Unavailable("{}", *unreachable_);
  if (const auto found = attempts_.find(target.key); found != attempts_.end()) found->second.removed = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InventoryItem>> FakeBackend::Inventory(absl::Time) {
  const std::lock_guard lock(mutex_);
  if (unreachable_) return Unavailable("{}", *unreachable_);
  std::vector<InventoryItem> items;
  for (const auto& [key, attempt] : attempts_) {
    const bool alive = std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                                   [&](const Rank& rank) { return rank.claimed && !IsGone(attempt, rank); });
    if (alive || attempt.queued) items.push_back({key, alive});
  }
  return items;
}

void FakeBackend::SetWake(std::function<void(const std::string& key)> wake) { wake_ = std::move(wake); }

void FakeBackend::Wake(const std::string& key) const {
  if (wake_) wake_(key);
}

void FakeBackend::OnNextLaunch(const std::string& key, LaunchScript script) {
  const std::lock_guard lock(mutex_);
  scripts_[key] = std::move(script);
}

void FakeBackend::SetUnreachable(std::optional<std::string> why) {
  const std::lock_guard lock(mutex_);
  unreachable_ = std::move(why);
}

void FakeBackend::StartQueued(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || !found->second.queued) return;
    found->second.queued = false;
    for (Rank& rank : found->second.ranks) {
      if (rank.program.kind == ProgramKind::kQueue) rank.program.kind = ProgramKind::kHold;
    }
    Claim(found->second, found->second.queued_nonce);
  }
  Wake(key);
}

void FakeBackend::EndRank(const std::string& key, int pool, int rank, int code) {
  {
    const std::lock_guard lock(mutex_);
    if (Rank* found = Find(key, pool, rank)) End(*found, ExitKind::kExited, code);
  }
  Wake(key);
}

void FakeBackend::TermFromOutside(const std::string& key, int pool, int rank) {
  {
    const std::lock_guard lock(mutex_);
    Rank* found = Find(key, pool, rank);
    if (found == nullptr || !found->running) return;
    if (found->signalled_by == SignalledBy::kNobody) found->signalled_by = SignalledBy::kOther;
    if (found->program.kind == ProgramKind::kTrap) {
      End(*found, ExitKind::kExited, found->program.value);
    } else {
      End(*found, ExitKind::kKilled, SIGTERM);
    }
  }
  Wake(key);
}

void FakeBackend::KillRunner(const std::string& key, int pool, int rank) {
  {
    const std::lock_guard lock(mutex_);
    Rank* found = Find(key, pool, rank);
    if (found == nullptr || found->seen.ended) return;
    found->running = false;
    found->lost = true;
  }
  Wake(key);
}

void FakeBackend::Vanish(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    attempts_.erase(key);
  }
  Wake(key);
}

void FakeBackend::SetEngineEnd(const std::string& key, EngineEnd end, std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    found->second.engine_end = end;
    found->second.reason = std::move(reason);
  }
  Wake(key);
}

std::vector<std::string> FakeBackend::NoncesThatRan(const std::string& key, int pool, int rank) const {
  const std::lock_guard lock(mutex_);
  const Rank* found = Find(key, pool, rank);
  return found == nullptr ? std::vector<std::string>() : found->ran;
}

int FakeBackend::launches(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(key);
  return found == attempts_.end() ? 0 : found->second.launches;
}

std::vector<StopLevel> FakeBackend::stops(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(key);
  return found == attempts_.end() ? std::vector<StopLevel>() : found->second.stops;
}

bool FakeBackend::removed(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(key);
  return found != attempts_.end() && found->second.removed;
}

std::string FakeBackend::EnvSeen(const std::string& key, int pool, int rank, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const Rank* found = Find(key, pool, rank);
  if (found == nullptr) return "";
  const auto value = found->env.find(name);
  return value == found->env.end() ? "" : value->second;
}

}  // namespace tp::fake
