#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/ids.h"
#include "store/store.h"

namespace tp::store {
namespace {

constexpr int kDeltaPage = 1000;

// What is kept of the flagged rows of an attempt and pool, and of those that correct them.
struct Flagged {
  int64_t cards = 0;
  int64_t end_unix_ms = 0;                // so far: of the base rows, then of their corrections
  std::map<std::string, int64_t> gpu_ms;  // by month
  std::set<std::string> corrected;        // months
};

class DeltaWalk {
 public:
  absl::Status Add(const core::LedgerRow& row) {
    const Key key{{{row.run, row.step}, row.attempt}, row.pool};
    if (row.delta) return AddDelta(key, row);
    if (!row.flagged) return absl::OkStatus();
    Flagged& flagged = flagged_[key];
    flagged.cards = row.cards;
    flagged.end_unix_ms = row.end_unix_ms;
    flagged.gpu_ms[row.month] += row.gpu_ms;
    return absl::OkStatus();
  }

  absl::Status CheckEnd() const {
    for (const auto& [key, flagged] : flagged_) {
      for (const auto& [month, gpu_ms] : flagged.gpu_ms) {
        if (gpu_ms >= 0) continue;
        return Fault(key, fmt::format("is corrected to {} gpu_ms in {}", gpu_ms, month));
      }
    }
    return absl::OkStatus();
  }

 private:
  using Key = std::pair<core::AttemptRef, int32_t>;  // with the pool

  absl::Status AddDelta(const Key& key, const core::LedgerRow& row) {
    const auto found = flagged_.find(key);
    if (found == flagged_.end()) {
      return Fault(key, fmt::format("is corrected by row {}, but no row of it is flagged", row.seq));
    }
    Flagged& flagged = found->second;
    if (!flagged.corrected.insert(row.month).second) {
      return Fault(key, fmt::format("is corrected a second time in {} by row {}", row.month, row.seq));
    }
    if (row.cards != flagged.cards || row.start_unix_ms != flagged.end_unix_ms) {
      return Fault(key, fmt::format("is corrected by row {}, which does not go on from where it was closed", row.seq));
    }
    flagged.end_unix_ms = row.end_unix_ms;
    flagged.gpu_ms[row.month] += row.gpu_ms;
    return absl::OkStatus();
  }

  static absl::Status Fault(const Key& key, const std::string& why) {
    const auto& [attempt, pool] = key;
    return Error(absl::StatusCode::kDataLoss, "ledger: attempt {} of step {} of run {}, pool {}, {}", attempt.attempt,
                 attempt.step.step + 1, attempt.step.run, pool, why);
  }

  std::map<Key, Flagged> flagged_;
};

}  // namespace

absl::Status CheckCorrections(Reader& reader) {
  DeltaWalk walk;
  int64_t seq = 0;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::vector<core::LedgerRow> rows, reader.Ledger({}, seq, kDeltaPage));
    if (rows.empty()) return walk.CheckEnd();
    for (const core::LedgerRow& row : rows) TP_RETURN_IF_ERROR(walk.Add(row));
    seq = rows.back().seq;
  }
}

}  // namespace tp::store
