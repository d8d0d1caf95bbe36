#include "sim/bills.h"

#include <algorithm>
#include <cstdlib>

#include "sim/units.h"

namespace tp::sim {

void CheckBill(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world, Journal& journal) {
  const AttemptTruth* truth = world.Find(key);
  if (truth == nullptr || !truth->AllStarted()) {
    journal.Break("{} is billed and never ran", key);
    return;
  }
  int64_t start_us = 0;
  int64_t end_us = 0;
  int64_t true_end_us = 0;
  int64_t cards = 0;
  int64_t skew_us = 0;
  for (const RankTruth& rank : truth->ranks) {
    const int64_t rank_skew_us = world.SkewUs(rank.placement.node);
    start_us = std::max(start_us, *rank.started_us + rank_skew_us);
    end_us = std::max(end_us, rank.ended_us.value_or(0) + rank_skew_us);
    true_end_us = std::max(true_end_us, rank.ended_us.value_or(0));
    cards += static_cast<int64_t>(rank.placement.cards.size());
    skew_us = std::max(skew_us, std::abs(rank_skew_us));
  }
  int64_t billed_ms = 0;
  bool flagged = false;
  for (const core::LedgerRow& row : rows) {
    billed_ms += row.gpu_ms;
    flagged = flagged || row.flagged;
  }
  const int64_t exact_ms = std::max<int64_t>(0, end_us - start_us) / 1000 * cards;
  if (truth->AllRecorded()) {
    if (billed_ms != exact_ms || flagged) {
      journal.Break("{}: {} gpu_ms billed{}, {} used", key, billed_ms, flagged ? " (flagged)" : "", exact_ms);
    }
    return;
  }
  // A sight is at most this much older when it is taken in.
  const int64_t slack_us = 15 * kSecond + 2 * skew_us;
  const int64_t most_ms = (std::max<int64_t>(0, true_end_us - start_us) + slack_us) / 1000 * cards;
  if (!flagged || billed_ms < 0 || billed_ms > most_ms) {
    journal.Break("{}: {} gpu_ms billed{}, {} used at most", key, billed_ms, flagged ? "" : " (not flagged)", most_ms);
  }
}

}  // namespace tp::sim
