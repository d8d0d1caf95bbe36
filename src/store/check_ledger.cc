#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/chain.h"
#include "store/store.h"
#include "store/usage.h"

namespace tp::store {
namespace {

constexpr int kPageRows = 1000;

template <typename... Args>
absl::Status Fault(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kDataLoss, format, std::forward<Args>(args)...);
}

// Walks the rows in order; what has been seen so far.
class Walk {
 public:
  absl::Status Add(const core::LedgerRow& row) {
    if (row.seq != seq_ + 1) {
      return Fault("ledger: row {} is missing; the row after {} says it is {}", seq_ + 1, seq_, row.seq);
    }
    if (row.previous_hash != hash_) return Fault("ledger: row {} does not follow the row before it", row.seq);
    if (row.hash != HashOf(row)) return Fault("ledger: row {} was changed after it was written", row.seq);
    if (row.gpu_ms != (row.end_unix_ms - row.start_unix_ms) * row.cards || (row.gpu_ms < 0 && !row.delta)) {
      return Fault("ledger: row {} says {} gpu_ms for {} ms on {} cards", row.seq, row.gpu_ms,
                   row.end_unix_ms - row.start_unix_ms, row.cards);
    }
    seq_ = row.seq;
    hash_ = row.hash;
    gpu_ms_[row.owner] += row.gpu_ms;
    month_gpu_ms_[row.month][row.owner] += row.gpu_ms;
    return absl::OkStatus();
  }

  absl::Status CheckEnd(const Meta& meta) const {
    if (meta.ledger_seq == seq_ && meta.ledger_hash == hash_) return absl::OkStatus();
    return Fault("ledger: its last row is {}, but {} rows were committed", seq_, meta.ledger_seq);
  }

  absl::Status CheckSums(const std::vector<UsageRow>& usage) const {
    std::map<std::string, int64_t> reported;
    for (const UsageRow& row : usage) reported[row.key] = row.gpu_ms;
    for (const auto& [owner, gpu_ms] : gpu_ms_) {
      if (reported[owner] != gpu_ms) {
        return Fault("usage of {} is reported as {} gpu_ms, its ledger rows sum to {}", owner, reported[owner], gpu_ms);
      }
    }
    if (reported.size() == gpu_ms_.size()) return absl::OkStatus();
    return Fault("usage is reported for {} owners, the ledger has {}", reported.size(), gpu_ms_.size());
  }

  absl::Status CheckMonths(const std::vector<MonthUseRow>& months) const {
    std::map<std::string, std::map<std::string, int64_t>> reported;
    for (const MonthUseRow& row : months) reported[row.month][row.owner] = row.gpu_ms;
    auto month = month_gpu_ms_.size() < 2 ? month_gpu_ms_.begin() : std::prev(month_gpu_ms_.end(), 2);
    for (; month != month_gpu_ms_.end(); ++month) {
      for (const auto& [owner, gpu_ms] : month->second) {
        if (reported[month->first][owner] == gpu_ms) continue;
        return Fault("use of {} in {} is reported as {} gpu_ms, the ledger rows sum to {}", owner, month->first,
                     reported[month->first][owner], gpu_ms);
      }
    }
    return absl::OkStatus();
  }

  int64_t seq() const { return seq_; }

 private:
  int64_t seq_ = 0;
  std::string hash_;
  std::map<std::string, int64_t> gpu_ms_;                               // by owner
  std::map<std::string, std::map<std::string, int64_t>> month_gpu_ms_;  // by month, then owner
};

// From where the walk stands to the last row there is.
absl::Status WalkToEnd(Reader& reader, Walk& walk) {
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::vector<core::LedgerRow> rows, reader.Ledger({}, walk.seq(), kPageRows));
    if (rows.empty()) return absl::OkStatus();
    for (const core::LedgerRow& row : rows) TP_RETURN_IF_ERROR(walk.Add(row));
  }
}

}  // namespace

absl::Status CheckLedger(Reader& reader) {
  Walk walk;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const Meta before, reader.ReadMeta());
    TP_RETURN_IF_ERROR(WalkToEnd(reader, walk));
    TP_ASSIGN_OR_RETURN(const std::vector<UsageRow> usage, reader.Usage({}, UsageKey::kUser));
    TP_ASSIGN_OR_RETURN(const std::vector<MonthUseRow> months, reader.MonthUse());
    TP_ASSIGN_OR_RETURN(const Meta after, reader.ReadMeta());
    // Rows that were committed meanwhile may be in one reading and not in the other: look again.
    if (after.ledger_seq != before.ledger_seq) continue;
    TP_RETURN_IF_ERROR(walk.CheckEnd(after));
    TP_RETURN_IF_ERROR(walk.CheckSums(usage));
    return walk.CheckMonths(months);
  }
}

}  // namespace tp::store
