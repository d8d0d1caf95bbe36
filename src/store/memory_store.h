// The in-memory twin of SqliteStore, for the simulator and for tests: accepts and refuses the same
// transactions and reads back the same values. Both sides of the interface in one object.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/txn.h"

namespace tp::store {

// Thread-safe.
class MemoryStore : public Store, public Reader {
 public:
  MemoryStore() = default;

  // What a restart, or a restored backup, would find: everything committed so far.
  std::unique_ptr<MemoryStore> Clone() const;

  absl::Status Commit(const Txn& txn) override;
  absl::StatusOr<Loaded> Load() override;
  absl::Status BeginEpoch(int64_t epoch, int64_t next_run) override;

  absl::StatusOr<core::RunWithSteps> GetRun(int64_t n) override;
  absl::StatusOr<int64_t> LastRun(const std::string& owner) override;
  absl::StatusOr<RunPage> ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) override;
  absl::StatusOr<std::vector<QueuedStepRow>> QueuedSteps() override;
  absl::StatusOr<std::vector<EventRow>> Events(int64_t run, int64_t after_revision, int limit) override;
  absl::StatusOr<std::vector<EventRow>> EventsAfter(int64_t revision, int limit) override;
  absl::StatusOr<std::vector<WordChange>> WordChangesAfter(int64_t revision, int limit) override;
  absl::StatusOr<int64_t> Revision() override;
  absl::StatusOr<Meta> ReadMeta() override;
  absl::StatusOr<std::optional<RequestRow>> FindRequest(const std::string& principal,
                                                        const std::string& request_id) override;
  absl::StatusOr<std::vector<std::string>> Owners() override;
  absl::StatusOr<std::vector<std::string>> NeededSnapshots() override;
  absl::StatusOr<std::vector<std::string>> SnapshotsOf(const std::string& owner, absl::Time committed_after) override;
  absl::StatusOr<std::optional<TokenRow>> FindToken(const std::string& id) override;
  absl::StatusOr<std::vector<UsageRow>> Usage(const UsageFilter& filter, UsageKey by) override;
  absl::StatusOr<std::vector<core::LedgerRow>> Ledger(const UsageFilter& filter, int64_t after_seq, int limit) override;
  absl::StatusOr<std::vector<MonthUseRow>> MonthUse() override;

 private:
  struct StoredRun {
    core::RunWithSteps value;
    RunSummary summary;
    absl::Time word_changed_at;
  };
  using RequestKey = std::pair<std::string, std::string>;
  // Run, step, attempt, pool, month, delta: billed once.
  using BillingKey = std::tuple<int64_t, int32_t, int32_t, int32_t, std::string, bool>;

  struct Data {
    Meta meta;
    std::map<int64_t, StoredRun> runs;
    std::vector<EventRow> events;                   // by revision
    std::map<int64_t, WordChangeRow> word_changes;  // by revision
    std::map<int64_t, OutboxRow> outbox;
    std::vector<core::LedgerRow> ledger;  // by seq
    std::set<BillingKey> billed;
    std::map<RequestKey, RequestRow> requests;
    std::map<std::string, SnapshotRow> snapshots;
    std::map<std::string, TokenRow> tokens;
    std::vector<AuditRow> audit;
    std::map<int64_t, core::QuotaRule> quota_rules;
    std::map<std::string, StorageUseRow> storage_use;
    std::map<std::string, WindowHoldRow> window_holds;
    std::map<core::NodePart, core::NodeMark> node_marks;
    std::map<std::string, std::vector<core::Strike>> strikes;            // by node
    std::map<std::string, core::Correction> corrections;                 // by key
    std::map<std::string, std::map<std::string, int64_t>> month_gpu_ms;  // by month, then owner
  };

  explicit MemoryStore(Data data) : data_(std::move(data)) {}

  static absl::StatusOr<StoredRun> Changed(const Data& data, int64_t n, const RunChange& change);
  static absl::Status CheckUnique(const Data& data, const Txn& txn);
  static bool Matches(const StoredRun& run, const RunFilter& filter);
  static void NoteWordChange(Data& data, const RunChange& change, const StoredRun& run);
  static void Append(Data& data, const Txn& txn);
  static void Set(Data& data, const Txn& txn);
  static void AddStrike(Data& data, const core::Strike& strike);
  static std::vector<MonthUseRow> NewestMonths(const Data& data);
  static std::vector<HourUseRow> HoursOfNewestMonths(const Data& data);

  mutable std::mutex mutex_;
  Data data_;
};

}  // namespace tp::store
