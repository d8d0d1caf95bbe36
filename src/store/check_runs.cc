#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/status.h"
#include "core/apply.h"
#include "core/ids.h"
#include "core/state.h"
#include "store/store.h"
#include "store/txn.h"

namespace tp::store {
namespace {

constexpr int kLedgerPage = 1000;
constexpr int kRunPage = 500;

// What base rows of the ledger come to; corrections are left out.
using Bills = std::map<core::AttemptRef, int64_t>;

absl::StatusOr<Bills> ReadBills(Reader& reader, const UsageFilter& filter) {
  Bills bills;
  int64_t seq = 0;
  for (;;) {
    TP_ASSIGN_OR_RETURN(const std::vector<core::LedgerRow> rows, reader.Ledger(filter, seq, kLedgerPage));
    if (rows.empty()) return bills;
    for (const core::LedgerRow& row : rows) {
      seq = row.seq;
      if (!row.delta) bills[{{row.run, row.step}, row.attempt}] += row.gpu_ms;
    }
  }
}

int64_t BilledFor(const Bills& bills, const core::AttemptRef& attempt) {
  const auto found = bills.find(attempt);
  return found == bills.end() ? 0 : found->second;
}

class RunCheck {
 public:
  // `bills` were read before the run was.
  RunCheck(Reader& reader, const Bills& bills, const core::RunWithSteps& run)
      : reader_(reader), bills_(bills), run_(run) {}

  absl::Status Check(const RunSummary& kept) {
    TP_RETURN_IF_ERROR(CheckSummary(kept));
    for (const core::Step& step : run_.steps) {
      const std::string broken = core::BrokenInvariant(step);
      if (!broken.empty()) return Fault(step, broken);
      for (const core::PastAttempt& past : step.past) TP_RETURN_IF_ERROR(CheckBilled(step, past));
      TP_RETURN_IF_ERROR(CheckMade(step));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSummary(const RunSummary& kept) const {
    TP_ASSIGN_OR_RETURN(const RunSummary derived, Summarize(run_.run.n, run_.steps));
    if (kept.word != derived.word) {
      return Error(absl::StatusCode::kDataLoss, "run {} is kept as {}, its steps come to {}", run_.run.id(),
                   core::Name(kept.word), core::Name(derived.word));
    }
    if (kept.retry_count == derived.retry_count) return absl::OkStatus();
    return Error(absl::StatusCode::kDataLoss, "run {} is kept with {} retries, its steps have {}", run_.run.id(),
                 kept.retry_count, derived.retry_count);
  }

  absl::Status CheckBilled(const core::Step& step, const core::PastAttempt& past) const {
    const core::AttemptRef attempt{step.ref, past.number};
    int64_t gpu_ms = 0;
    const bool sound = !__builtin_mul_overflow(past.metered_ms, past.cards, &gpu_ms);
    if (sound && BilledFor(bills_, attempt) == gpu_ms) return absl::OkStatus();
    // It may have ended after the bills were read.
    TP_ASSIGN_OR_RETURN(const Bills newest, ReadBills(reader_, {.run = step.ref.run}));
    const int64_t billed = BilledFor(newest, attempt);
    if (sound && billed == gpu_ms) return absl::OkStatus();
    return Fault(step, fmt::format("attempt {} is kept with {} ms on {} cards, its ledger rows come to {} gpu_ms",
                                   past.number, past.metered_ms, past.cards, billed));
  }

  // The oldest attempts are forgotten, the ledger is not.
  absl::Status CheckMade(const core::Step& step) const {
    const int32_t oldest = step.past.empty() ? 0 : step.past.front().number;
    for (auto bill = bills_.lower_bound({step.ref, oldest}); bill != bills_.end(); ++bill) {
      const auto& [step_ref, number] = bill->first;
      if (step_ref != step.ref) break;
      const bool ended =
          std::any_of(step.past.begin(), step.past.end(),
                      [number = number](const core::PastAttempt& past) { return past.number == number; });
      if (!ended) return Fault(step, fmt::format("the ledger bills attempt {}, which has not ended", number));
    }
    return absl::OkStatus();
  }

  absl::Status Fault(const core::Step& step, const std::string& why) const {
    return Error(absl::StatusCode::kDataLoss, "step {} of {}: {}", step.ref.step + 1, run_.run.id(), why);
  }

  Reader& reader_;
  const Bills& bills_;
  const core::RunWithSteps& run_;
};

}  // namespace

absl::StatusOr<int64_t> CheckRuns(Reader& reader) {
  TP_ASSIGN_OR_RETURN(const Bills bills, ReadBills(reader, {}));
  const RunFilter everything{.with_removed = true};
  int64_t checked = 0;
  std::optional<int64_t> before;
  do {
    TP_ASSIGN_OR_RETURN(const RunPage page, reader.ListRuns(everything, before, kRunPage));
    for (size_t i = 0; i < page.runs.size(); ++i) {
      TP_RETURN_IF_ERROR(RunCheck(reader, bills, page.runs[i]).Check(page.summaries[i]));
      ++checked;
    }
    before = page.next_before;
  } while (before);
  return checked;
}

}  // namespace tp::store
