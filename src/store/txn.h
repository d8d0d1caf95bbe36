// What both stores derive from a transaction before they write it, so that they accept the same ones and
// mean the same by them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/run.h"
#include "store/rows.h"

namespace tp::store {

// The counters and the ledger's chain go on from where they were: revisions, ledger rows and outbox ids
// without a gap, a repetition or a step back. A breach is a bug of the caller's; FAILED_PRECONDITION.
absl::Status CheckTxn(const Txn& txn, const Meta& before);

// A new epoch is later than the present one and hands out no run number again.
absl::Status CheckEpoch(int64_t epoch, int64_t next_run, const Meta& before);

// What a transaction says of one run; the last of several values of a row counts. Points into the Txn.
struct RunChange {
  const core::Run* run = nullptr;              // null: the run's own row stays as it is
  std::map<int32_t, const core::Step*> steps;  // by index; those not named stay as they are
  const EventRow* last_event = nullptr;
  const EventRow* idle_event = nullptr;  // the last kIdleEvent

  // When the newest of the changed steps entered its state: the time of a change of the run's word.
  absl::Time changed_at() const;
};
std::map<int64_t, RunChange> ChangesByRun(const Txn& txn);

// `steps` are all steps of run `n`, by index. FAILED_PRECONDITION where one is missing.
absl::StatusOr<RunSummary> Summarize(int64_t n, const std::vector<core::Step>& steps);

// What the change makes of the run's word, where somebody can be told of it. `before` is the word so far, nothing
// for a new run; `steps` are all steps as they will be, by index. A change without an event is nobody's to tell.
std::optional<WordChangeRow> WordChangeOf(const RunChange& change, std::optional<core::RunWord> before,
                                          const RunSummary& after, const std::vector<core::Step>& steps);

}  // namespace tp::store
