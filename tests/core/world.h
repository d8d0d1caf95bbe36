// Builders for core tests: a step, the events that happen to it, and shorthand for what ranks record.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/apply.h"
#include "core/judge.h"

namespace tp::core::test {

inline const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

inline HostStamp At(int64_t offset_ms) {
  return {"host", "boot-1", 1'000'000'000 + offset_ms * 1000, absl::ToUnixMicros(kStart) + offset_ms * 1000};
}

inline StartRecord Start(int64_t offset_ms) {
  StartRecord record;
  record.nonce = "nonce";
  record.at = At(offset_ms);
  return record;
}

inline EndRecord Exit(int code, int64_t offset_ms = 5000, SignalledBy by = SignalledBy::kNobody) {
  EndRecord record;
  record.nonce = "nonce";
  record.at = At(offset_ms);
  record.code = code;
  record.signalled_by = by;
  return record;
}

inline EndRecord Killed(int signal, int64_t offset_ms = 5000, SignalledBy by = SignalledBy::kNobody) {
  EndRecord record = Exit(-1, offset_ms, by);
  record.exit = ExitKind::kKilled;
  record.term_signal = signal;
  return record;
}

inline RankObservation Rank(int rank, Tree tree, std::optional<StartRecord> started = std::nullopt,
                            std::optional<EndRecord> ended = std::nullopt) {
  RankObservation seen;
  seen.rank = rank;
  seen.tree = tree;
  seen.started = std::move(started);
  seen.ended = std::move(ended);
  return seen;
}
inline RankObservation Up(int rank) { return Rank(rank, Tree::kAlive, Start(100 * rank)); }
inline RankObservation Over(int rank, EndRecord end) {
  return Rank(rank, Tree::kGone, Start(100 * rank), std::move(end));
}

inline Observed Seen(std::vector<RankObservation> ranks, bool freed = false, Claim claim = Claim::kThisLaunch) {
  Present present;
  present.phase = freed ? EnginePhase::kEnded : EnginePhase::kActive;
  present.claim = claim;
  present.ranks = std::move(ranks);
  present.freed = freed;
  return {present};
}
inline Observed Nothing(std::string why = "engine unreachable") { return {Unknown{std::move(why)}}; }
inline Observed Gone(Claim claim = Claim::kNone) { return {Absent{claim, {}}}; }
inline Observed Fenced() { return Seen({}, true, Claim::kFenced); }

inline Admitted Admit(int ranks, int attempt = 1) {
  Admitted admitted;
  admitted.key = "tp-test-e1-1-s0-a" + std::to_string(attempt);
  admitted.nonce = "nonce";
  PoolPlacement pool;
  pool.series = "h200";
  pool.profile = "h200";
  pool.gpus_per_node = 8;
  for (int i = 0; i < ranks; ++i)
    pool.ranks.push_back({"node-" + std::to_string(i + 1), "127.0.0.1", {0, 1, 2, 3, 4, 5, 6, 7}});
  admitted.placement = {pool};
  PoolShape shape;
  shape.series = "h200";
  shape.profile = "h200";
  shape.nodes = ranks;
  shape.gpus_per_node = 8;
  admitted.shape.pools = {shape};
  admitted.shape.backend = "local";
  return admitted;
}

// A step and the world's clock; every event must be legal unless Try is used.
class World {
 public:
  explicit World(int ranks = 1) : ranks_(ranks) {
    step.ref = {1, 0};
    step.spec.name = "train";
    step.spec.argv = {"train"};
    step.created_at = now;
    step.entered_at = now;
  }

  absl::StatusOr<Transition> Try(const Event& event) {
    auto result = Apply(ProductTable(), step, event, now, policy);
    if (result.ok()) {
      effects = result->effects;
      step = result->next;
      last = *result;
    }
    return result;
  }

  // Returns the new state.
  JobState Do(const Event& event) {
    const auto result = Try(event);
    if (!result.ok()) return Fail(result.status());
    if (std::string broken = BrokenInvariant(step); !broken.empty()) return Fail(absl::InternalError(broken));
    return step.state;
  }
  JobState After(absl::Duration wait, const Event& event) {
    now += wait;
    return Do(event);
  }

  JobState Launch() {
    Do(Admit(ranks_, step.attempts + 1));
    return Do(LaunchAnswered{LaunchAccepted{}});
  }
  JobState RunAll() {
    Launch();
    std::vector<RankObservation> up;
    for (int i = 0; i < ranks_; ++i) up.push_back(Up(i));
    return Do(Seen(up));
  }

  template <typename E>
  bool Wants() const {
    for (const Effect& effect : effects) {
      if (std::holds_alternative<E>(effect)) return true;
    }
    return false;
  }
  std::optional<StopLevel> Signal() const {
    for (const Effect& effect : effects) {
      if (const auto* signal = std::get_if<SignalAttempt>(&effect)) return signal->level;
    }
    return std::nullopt;
  }

  Step step;
  Policy policy;
  absl::Time now = kStart;
  std::vector<Effect> effects;
  Transition last;

 private:
  JobState Fail(const absl::Status& status);
  int ranks_;
};

}  // namespace tp::core::test
