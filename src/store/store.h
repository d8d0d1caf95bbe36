// Where tpd's state is kept. Two implementations with one meaning: SqliteStore, and MemoryStore for
// the simulator and tests; one test suite runs against both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/run.h"
#include "store/rows.h"

namespace tp::store {

// The writing side. Owned by one thread at a time (the writer); blocking.
class Store {
 public:
  virtual ~Store() = default;

  // All of it or nothing, durable when it returns OK. RESOURCE_EXHAUSTED: the disk is full, nothing was
  // written. Any other error: the state of the storage is not known, the process must end.
  virtual absl::Status Commit(const Txn& txn) = 0;

  virtual absl::StatusOr<Loaded> Load() = 0;

  // Starts a new epoch over a database that was restored (DESIGN 5.10): run numbers from `next_run`.
  virtual absl::Status BeginEpoch(int64_t epoch, int64_t next_run) = 0;
};

struct RunFilter {
  std::optional<std::string> owner = std::nullopt;
  std::optional<std::string> project = std::nullopt;
  std::vector<core::RunWord> words = {};  // empty: all
  // Unfinished ones, and those whose word changed later than this.
  std::optional<absl::Time> changed_after = std::nullopt;
  std::map<std::string, std::string> labels = {};  // all must match
  bool with_removed = false;
};

// Newest first by n, a total order.
struct RunPage {
  std::vector<core::RunWithSteps> runs;
  std::vector<RunSummary> summaries;   // as they are kept, of each of the runs
  std::optional<int64_t> next_before;  // pass as `before` for the next page
};

enum class UsageKey : uint8_t { kUser, kProject, kSeries, kProfile, kDay, kMonth, kRun };

// What orders a queued step and says what it wants; the rest of it is read where it is shown.
struct QueuedStepRow {
  core::StepRef ref;
  std::string owner;
  int32_t priority = 0;
  absl::Time submitted_at;
  bool held = false;  // by somebody, or for its shape
  std::vector<std::string> profiles;
  bool operator==(const QueuedStepRow&) const = default;
};

struct WordChange {
  WordChangeRow row;
  core::Run run;  // without its labels
  bool operator==(const WordChange&) const = default;
};

struct UsageRow {
  std::string key;
  int64_t gpu_ms = 0;
  int64_t runs = 0;
  bool operator==(const UsageRow&) const = default;
};

// Intervals are cut to [from, to); days are UTC days, months those of the ledger's rows.
struct UsageFilter {
  std::optional<std::string> owner = std::nullopt;
  std::optional<std::string> project = std::nullopt;
  std::optional<absl::Time> from = std::nullopt;
  std::optional<absl::Time> to = std::nullopt;
  std::optional<int64_t> run = std::nullopt;
};

// The reading side: committed state only. Thread-safe; each call uses a read-only connection of its own.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual absl::StatusOr<core::RunWithSteps> GetRun(int64_t n) = 0;  // NOT_FOUND
  // The newest that is not removed; NOT_FOUND: none.
  virtual absl::StatusOr<int64_t> LastRun(const std::string& owner) = 0;
  virtual absl::StatusOr<RunPage> ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) = 0;
  // Steps in QUEUED that wait for no other of their run, by number. One statement, whatever their number.
  virtual absl::StatusOr<std::vector<QueuedStepRow>> QueuedSteps() = 0;
  virtual absl::StatusOr<std::vector<EventRow>> Events(int64_t run, int64_t after_revision, int limit) = 0;
  // Runs with an event of a revision above the given one, and the newest revision.
  virtual absl::StatusOr<std::vector<EventRow>> EventsAfter(int64_t revision, int limit) = 0;
  // Of all runs, by revision.
  virtual absl::StatusOr<std::vector<WordChange>> WordChangesAfter(int64_t revision, int limit) = 0;
  virtual absl::StatusOr<int64_t> Revision() = 0;
  virtual absl::StatusOr<Meta> ReadMeta() = 0;
  virtual absl::StatusOr<std::optional<RequestRow>> FindRequest(const std::string& principal,
                                                                const std::string& request_id) = 0;
  // Of all runs, removed ones included; by name.
  virtual absl::StatusOr<std::vector<std::string>> Owners() = 0;
  // Snapshots of all runs that may still need theirs, in any state; a run that was removed needs none.
  virtual absl::StatusOr<std::vector<std::string>> NeededSnapshots() = 0;
  // Of these, the owner's, and what the owner committed later than `committed_after`.
  virtual absl::StatusOr<std::vector<std::string>> SnapshotsOf(const std::string& owner,
                                                               absl::Time committed_after) = 0;
  virtual absl::StatusOr<std::optional<TokenRow>> FindToken(const std::string& id) = 0;
  virtual absl::StatusOr<std::vector<UsageRow>> Usage(const UsageFilter& filter, UsageKey by) = 0;
  virtual absl::StatusOr<std::vector<core::LedgerRow>> Ledger(const UsageFilter& filter, int64_t after_seq,
                                                              int limit) = 0;
  virtual absl::StatusOr<std::vector<MonthUseRow>> MonthUse() = 0;  // that of Loaded
};

// `tpd fsck`; DATA_LOSS names the first row that is wrong. A commit meanwhile is no fault.

// Walks the whole ledger chain and compares the aggregates with what the rows come to.
absl::Status CheckLedger(Reader& reader);

// Every correction in the ledger is the only one of its attempt, pool and month, goes on from where a flagged row
// of that attempt and pool ends, and leaves no month below nothing.
absl::Status CheckCorrections(Reader& reader);

// Every run, removed ones too: the rules that its steps keep, what is kept beside them, and that each
// attempt was billed what was metered. Returns how many there are.
absl::StatusOr<int64_t> CheckRuns(Reader& reader);

}  // namespace tp::store
