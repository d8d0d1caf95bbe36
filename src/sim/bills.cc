#include "sim/bills.h"

#include <algorithm>
#include <cstdlib>

#include "sim/units.h"

namespace tp::sim {
namespace {

// What an attempt used, by the hosts' clocks and by the true one.
struct Used {
  int64_t start_us = 0;
  int64_t end_us = 0;
  int64_t true_end_us = 0;
  int64_t cards = 0;
  int64_t skew_us = 0;  // the largest

  int64_t exact_gpu_ms() const { return std::max<int64_t>(0, end_us - start_us) / 1000 * cards; }
};

Used UsedBy(const AttemptTruth& truth, const World& world) {
  Used used;
  for (const RankTruth& rank : truth.ranks) {
    const int64_t skew_us = world.SkewUs(rank.placement.node);
    used.start_us = std::max(used.start_us, *rank.started_us + skew_us);
    used.end_us = std::max(used.end_us, rank.ended_us.value_or(0) + skew_us);
    used.true_end_us = std::max(used.true_end_us, rank.ended_us.value_or(0));
    used.cards += static_cast<int64_t>(rank.placement.cards.size());
    used.skew_us = std::max(used.skew_us, std::abs(skew_us));
  }
  return used;
}

int64_t GpuMsOf(const std::vector<core::LedgerRow>& rows) {
  int64_t gpu_ms = 0;
  for (const core::LedgerRow& row : rows) gpu_ms += row.gpu_ms;
  return gpu_ms;
}

}  // namespace

void CheckBill(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world, Journal& journal) {
  const AttemptTruth* truth = world.Find(key);
  if (truth == nullptr || !truth->AllStarted()) {
    journal.Break("{} is billed and never ran", key);
    return;
  }
  const Used used = UsedBy(*truth, world);
  const int64_t billed_ms = GpuMsOf(rows);
  const bool flagged = std::any_of(rows.begin(), rows.end(), [](const core::LedgerRow& row) { return row.flagged; });
  if (truth->AllRecorded()) {
    if (billed_ms != used.exact_gpu_ms() || flagged) {
      journal.Break("{}: {} gpu_ms billed{}, {} used", key, billed_ms, flagged ? " (flagged)" : "",
                    used.exact_gpu_ms());
    }
    return;
  }
  // A sight is at most this much older when it is taken in.
  const int64_t slack_us = 15 * kSecond + 2 * used.skew_us;
  const int64_t most_ms = (std::max<int64_t>(0, used.true_end_us - used.start_us) + slack_us) / 1000 * used.cards;
  if (!flagged || billed_ms < 0 || billed_ms > most_ms) {
    journal.Break("{}: {} gpu_ms billed{}, {} used at most", key, billed_ms, flagged ? "" : " (not flagged)", most_ms);
  }
}

void CheckCorrected(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world,
                    Journal& journal) {
  const AttemptTruth* truth = world.Find(key);
  if (truth == nullptr || !truth->RecordsComeLate()) {
    journal.Break("{} is corrected and no record of it came late", key);
    return;
  }
  const int64_t exact_ms = UsedBy(*truth, world).exact_gpu_ms();
  if (const int64_t billed_ms = GpuMsOf(rows); billed_ms != exact_ms) {
    journal.Break("{}: {} gpu_ms billed and corrected, {} used", key, billed_ms, exact_ms);
  }
}

}  // namespace tp::sim
