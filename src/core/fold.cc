#include "core/fold.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"

namespace tp::core {
namespace {

// How much time that counts for a deadline a restart may forget.
constexpr absl::Duration kSaveRunningTimeEvery = absl::Seconds(10);
constexpr absl::Duration kSaveWaitingTimeEvery = absl::Minutes(1);

void MergeRank(RankObservation& known, const RankObservation& seen) {
  if (!known.started && seen.started) known.started = seen.started;
  if (!known.ended && seen.ended) known.ended = seen.ended;
  if (seen.heartbeat && (!known.heartbeat || known.heartbeat->count < seen.heartbeat->count)) {
    known.heartbeat = seen.heartbeat;
  }
  if (known.tree != Tree::kGone) known.tree = seen.tree;
}

// In the order of EmptyRanks.
auto PlaceOf(const RankObservation& rank) { return std::pair(rank.pool, rank.rank); }

void MergeRanks(Attempt& attempt, const std::vector<RankObservation>& seen) {
  for (const RankObservation& rank : seen) {
    const auto known =
        std::lower_bound(attempt.ranks.begin(), attempt.ranks.end(), rank,
                         [](const RankObservation& a, const RankObservation& b) { return PlaceOf(a) < PlaceOf(b); });
    if (known != attempt.ranks.end() && PlaceOf(*known) == PlaceOf(rank)) MergeRank(*known, rank);
  }
}

void MergeClaim(Attempt& attempt, Claim seen) {
  if (attempt.claim == Claim::kNone) attempt.claim = seen;
}

// Only time between two sights in a row counts; what passed under Unknown or with tpd down does not.
void CountSeenTime(Step& step, absl::Duration seen) {
  Attempt& attempt = *step.attempt;
  if (step.state != JobState::kRunning) {
    (attempt.granted_at ? attempt.sight.starting : attempt.sight.pending) += seen;
  } else if (attempt.meter && !attempt.meter->closed_unix_us) {
    step.ran += seen;
  }
}

// The grace that a signal gave goes on where it was.
void ShiftGrace(Attempt& attempt, absl::Duration unseen) {
  if (attempt.ending && InGrace(*attempt.ending) && attempt.ending->escalate_at) {
    *attempt.ending->escalate_at += unseen;
  }
}

void See(Step& step, absl::Time now) {
  Sight& sight = step.attempt->sight;
  if (sight.unknown_since) {
    ShiftGrace(*step.attempt, std::max(now - *sight.unknown_since, absl::ZeroDuration()));
  } else if (sight.last_seen) {
    CountSeenTime(step, std::max(now - *sight.last_seen, absl::ZeroDuration()));
  }
  sight.last_seen = now;
  sight.unknown_since.reset();
  sight.unknown_why.clear();
}

bool AnyAlive(const std::vector<RankObservation>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankObservation& rank) { return rank.tree == Tree::kAlive; });
}

// Whether a rank has beaten since it was last read.
bool AnyBeats(const Attempt& attempt, const std::vector<RankObservation>& seen) {
  for (const RankObservation& rank : seen) {
    for (const RankObservation& known : attempt.ranks) {
      if (known.pool != rank.pool || known.rank != rank.rank || !rank.heartbeat) continue;
      if (!known.heartbeat || known.heartbeat->count < rank.heartbeat->count) return true;
    }
  }
  return false;
}

void ForgetAbsence(Sight& sight) {
  sight.absent_count = 0;
  sight.absent_since.reset();
}

void FoldPresent(Step& step, const Present& present, absl::Time now) {
  See(step, now);
  Attempt& attempt = *step.attempt;
  ForgetAbsence(attempt.sight);
  if (AnyAlive(present.ranks)) attempt.sight.last_alive = now;
  attempt.sight.engine_reason = present.reason;
  MergeClaim(attempt, present.claim);
  MergeRanks(attempt, present.ranks);
  if (!attempt.granted_at && (present.cards_granted || attempt.owned())) attempt.granted_at = now;
  if (present.engine_end != EngineEnd::kNone) attempt.engine_end = present.engine_end;
  attempt.freed = present.freed;
}

void FoldAbsent(Step& step, const Absent& absent, absl::Time now, const Policy& policy) {
  See(step, now);
  Attempt& attempt = *step.attempt;
  const bool beats = AnyBeats(attempt, absent.ranks);
  MergeClaim(attempt, absent.claim);
  MergeRanks(attempt, absent.ranks);
  if (beats) {  // the engine has lost it, the host has not
    ForgetAbsence(attempt.sight);
    attempt.freed = false;
    return;
  }
  // While the launch call is under way its object may simply not be there yet.
  if (attempt.handover == Handover::kSending) return;
  Sight& sight = attempt.sight;
  if (!sight.absent_since) sight.absent_since = now;
  ++sight.absent_count;
  attempt.freed = sight.absent_count >= policy.absent_confirmations && now - *sight.absent_since >= policy.absent_grace;
}

void FoldUnknown(Step& step, const Unknown& unknown, absl::Time now) {
  Sight& sight = step.attempt->sight;
  if (!sight.unknown_since) sight.unknown_since = now;
  sight.unknown_why = unknown.why;
  // Two answers of Absent count only when nothing unobservable lay between them.
  ForgetAbsence(sight);
}

// Whether a multiple of `every` lies between them: what grows by small steps is saved as often.
bool Passed(absl::Duration before, absl::Duration after, absl::Duration every) {
  return absl::Floor(before, every) != absl::Floor(after, every);
}

}  // namespace

std::vector<RankObservation> EmptyRanks(const std::vector<PoolPlacement>& placement) {
  std::vector<RankObservation> ranks;
  for (size_t pool = 0; pool < placement.size(); ++pool) {
    for (size_t rank = 0; rank < placement[pool].ranks.size(); ++rank) {
      RankObservation empty;
      empty.pool = static_cast<int>(pool);
      empty.rank = static_cast<int>(rank);
      ranks.push_back(empty);
    }
  }
  return ranks;
}

void FoldObservation(Step& step, const Observation& observation, absl::Time now, const Policy& policy) {
  if (!step.attempt) return;
  std::visit(Overloaded{
                 [&](const Present& present) { FoldPresent(step, present, now); },
                 [&](const Absent& absent) { FoldAbsent(step, absent, now, policy); },
                 [&](const Unknown& unknown) { FoldUnknown(step, unknown, now); },
             },
             observation);
}

void FoldRestart(Step& step) {
  if (!step.attempt) return;
  FoldUnknown(step, Unknown{"tpd has started and not looked yet"},
              step.attempt->sight.last_seen.value_or(step.attempt->created_at));
}

void FoldClockSet(Step& step, absl::Duration by) {
  const auto shift = [by](std::optional<absl::Time>& moment) {
    if (moment) *moment += by;
  };
  shift(step.cooldown_until);
  shift(step.backoff_until);
  if (step.state == JobState::kPaused) step.entered_at += by;  // a window's resume comes min_flip after it
  if (!step.attempt) return;
  Sight& sight = step.attempt->sight;
  shift(sight.last_seen);
  shift(sight.unknown_since);
  shift(sight.absent_since);
  shift(sight.last_alive);
  shift(sight.look_asked);
  if (step.attempt->meter) step.attempt->meter->seen_at += by;
  if (step.attempt->ending) shift(step.attempt->ending->escalate_at);
}

bool InGrace(const Ending& ending) { return ending.sent == SignalSent::kWarn || ending.sent == SignalSent::kTerm; }

bool WorthSaving(const Step& before, const Step& after) {
  if (!before.attempt || !after.attempt) return !(before == after);
  if (Passed(before.ran, after.ran, kSaveRunningTimeEvery)) return true;
  const Attempt& old = *before.attempt;
  const Attempt& now = *after.attempt;
  if (old.claim != now.claim || old.freed != now.freed || old.engine_end != now.engine_end) return true;
  if (old.granted_at != now.granted_at || old.ending != now.ending) return true;
  if (Passed(old.sight.pending, now.sight.pending, kSaveWaitingTimeEvery)) return true;
  if (Passed(old.sight.starting, now.sight.starting, kSaveWaitingTimeEvery)) return true;
  for (size_t i = 0; i < now.ranks.size(); ++i) {
    if (old.ranks[i].started != now.ranks[i].started || old.ranks[i].ended != now.ranks[i].ended) return true;
    if (old.ranks[i].tree != now.ranks[i].tree && now.ranks[i].tree == Tree::kGone) return true;
  }
  return false;
}

}  // namespace tp::core
