#include "core/correction.h"

#include <algorithm>

#include "base/overloaded.h"

namespace tp::core {
namespace {

constexpr absl::Duration kFirstLook = absl::Minutes(1);
constexpr absl::Duration kSeldom = absl::Hours(1);

bool LacksRecord(const std::vector<RankObservation>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankObservation& rank) { return !rank.ended.has_value(); });
}

bool TakeRecord(std::vector<RankObservation>& ranks, const RankObservation& seen) {
  if (!seen.ended) return false;
  for (RankObservation& rank : ranks) {
    if (rank.pool != seen.pool || rank.rank != seen.rank || rank.ended) continue;
    rank.ended = seen.ended;
    return true;
  }
  return false;
}

bool TakeFrom(std::vector<RankObservation>& ranks, const std::vector<RankObservation>& seen) {
  bool any = false;
  for (const RankObservation& rank : seen) any = TakeRecord(ranks, rank) || any;
  return any;
}

}  // namespace

bool AwaitsRecords(const Meter& meter, const std::vector<RankObservation>& ranks) {
  return meter.flagged && LacksRecord(ranks);
}

absl::Duration NextCorrectionLook(absl::Duration age) { return std::clamp(age, kFirstLook, kSeldom); }

bool TakeRecords(Correction& correction, const Observation& seen) {
  return std::visit(Overloaded{
                        [&](const Present& present) { return TakeFrom(correction.ranks, present.ranks); },
                        [&](const Absent& absent) { return TakeFrom(correction.ranks, absent.ranks); },
                        [](const Unknown&) { return false; },
                    },
                    seen);
}

bool IsComplete(const Correction& correction) { return !LacksRecord(correction.ranks); }

std::vector<LedgerRow> CorrectionRows(const Correction& correction, absl::TimeZone zone) {
  Meter corrected = correction.meter;
  CloseMeter(corrected, correction.ranks, std::nullopt);
  const LedgerOwner owner{correction.attempt.step, correction.attempt.attempt, correction.owner, correction.project};
  return DeltaRows(owner, correction.meter, corrected, correction.placement, zone);
}

}  // namespace tp::core
