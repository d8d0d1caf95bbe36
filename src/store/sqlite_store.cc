#include "store/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "base/fault_point.h"
#include "base/status.h"
#include "store/schema.h"
#include "store/sqlite_rows.h"

namespace tp::store {
namespace {

// Pages of 4 KiB in the write-ahead log from which a commit folds them back, and from which the log's
// file is cut to nothing as well.
constexpr int kFoldPages = 1000;
constexpr int kCutPages = 16000;

int NoteLogPages(void* pages, sqlite3* /*handle*/, const char* /*schema*/, int count) {
  *static_cast<int*>(pages) = count;
  return SQLITE_OK;
}

template <typename Row>
absl::Status WriteEach(Database& database, const std::vector<Row>& rows, absl::Status (*write)(Database&, const Row&)) {
  for (const Row& row : rows) TP_RETURN_IF_ERROR(write(database, row));
  return absl::OkStatus();
}

// The stored steps of run `n` that the change leaves as they are.
absl::StatusOr<std::vector<core::Step>> OtherSteps(Database& database, int64_t n, const RunChange& change) {
  static const std::string sql =
      fmt::format("SELECT {} FROM step WHERE run = ? AND step NOT IN (SELECT value FROM json_each(?))", kStepColumns);
  std::string changed;
  for (const auto& [index, step] : change.steps) changed += fmt::format("{}{}", changed.empty() ? "" : ",", index);
  Query query(database, sql);
  query.Bind(n, fmt::format("[{}]", changed));
  return ReadAll(query, ReadStep);
}

core::RunWord ReadWord(Columns& columns) { return columns.Enum<core::RunWord>(); }

// As it is stored; nothing of a run that is new.
absl::StatusOr<std::optional<core::RunWord>> WordOf(Database& database, int64_t n) {
  Query query(database, "SELECT word FROM run WHERE n = ?");
  query.Bind(n);
  return ReadOne(query, ReadWord);
}

// A whole table, in the order of its key.
template <typename Row>
absl::StatusOr<std::vector<Row>> SelectAll(Database& database, std::string_view columns, std::string_view table,
                                           std::string_view key, Row (*read)(Columns&)) {
  Query query(database, fmt::format("SELECT {} FROM {} ORDER BY {}", columns, table, key));
  return ReadAll(query, read);
}

}  // namespace

SqliteStore::SqliteStore(Database database, LockFile* lock) : database_(std::move(database)), lock_(lock) {
  sqlite3_wal_hook(database_.handle(), NoteLogPages, &log_pages_);
}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path, LockFile* lock) {
  TP_ASSIGN_OR_RETURN(Database database, Database::Open(path, Access::kReadWrite));
  TP_RETURN_IF_ERROR(Migrate(database, ProductMigrations()));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(database), lock));
  TP_RETURN_IF_ERROR(store->ReadMetaRow());
  return store;
}

absl::Status SqliteStore::ReadMetaRow() {
  static const std::string sql = fmt::format("SELECT {} FROM meta", kMetaColumns);
  Query query(database_, sql);
  TP_ASSIGN_OR_RETURN(const std::optional<Meta> meta, ReadOne(query, ReadMeta));
  if (!meta) return Error(absl::StatusCode::kDataLoss, "{}: its counters are missing", database_.path());
  meta_ = *meta;
  return absl::OkStatus();
}

// --- Committing -----------------------------------------------------------------------------------

absl::Status SqliteStore::Commit(const Txn& txn) {
  TP_RETURN_IF_ERROR(CheckTxn(txn, meta_));
  if (lock_ != nullptr) {
    if (lock_->IsAheadOf(meta_)) {
      return FailedPrecondition("{} was restored from a backup: begin a new epoch before the first commit",
                                database_.path());
    }
    TP_RETURN_IF_ERROR(lock_->ReserveRuns(txn.meta.next_run));
  }
  TP_RETURN_IF_ERROR(Write(txn));
  meta_ = txn.meta;
  if (lock_ != nullptr) TP_RETURN_IF_ERROR(lock_->Record(meta_));
  FoldLog();
  return absl::OkStatus();
}

absl::Status SqliteStore::Write(const Txn& txn) {
  TP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_, Transaction::Kind::kWrite));
  for (const auto& [n, change] : ChangesByRun(txn)) TP_RETURN_IF_ERROR(WriteChange(n, change));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.events, WriteEvent));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.outbox_added, WriteOutbox));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.outbox_done, DeleteOutbox));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.ledger, WriteLedger));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.corrections, WriteCorrection));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.corrections_done, DeleteCorrection));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.requests, WriteRequest));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.snapshots, WriteSnapshot));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.tokens, WriteToken));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.audit, WriteAudit));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.quota_rules, WriteQuotaRule));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.quota_rules_removed, DeleteQuotaRule));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.storage_use, WriteStorageUse));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.window_holds, WriteWindowHold));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.node_marks, WriteNodeMark));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.node_marks_removed, DeleteNodeMark));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.strikes, WriteStrike));
  TP_RETURN_IF_ERROR(WriteEach(database_, txn.strikes_forgotten, DeleteStrikes));
  TP_RETURN_IF_ERROR(WriteMeta(database_, txn.meta));
  return transaction.Commit();
}

absl::Status SqliteStore::WriteChange(int64_t n, const RunChange& change) {
  TP_ASSIGN_OR_RETURN(const std::vector<core::Step> steps, StepsAfter(n, change));
  TP_ASSIGN_OR_RETURN(const RunSummary summary, Summarize(n, steps));
  std::optional<core::RunWord> before;
  if (core::NoticeEventOf(summary.word)) {  // else there is nothing to tell, whatever it was
    TP_ASSIGN_OR_RETURN(before, WordOf(database_, n));
  }
  if (change.run != nullptr) TP_RETURN_IF_ERROR(WriteRun(database_, *change.run, summary, change.changed_at()));
  for (const auto& [index, step] : change.steps) TP_RETURN_IF_ERROR(WriteStep(database_, *step));
  TP_RETURN_IF_ERROR(WriteSummary(database_, n, summary, change.changed_at()));
  const auto word_change = WordChangeOf(change, before, summary, steps);
  return word_change ? WriteWordChange(database_, *word_change) : absl::OkStatus();
}

// As they will be: those of the change, the others as they are stored.
absl::StatusOr<std::vector<core::Step>> SqliteStore::StepsAfter(int64_t n, const RunChange& change) {
  TP_ASSIGN_OR_RETURN(std::vector<core::Step> steps, OtherSteps(database_, n, change));
  for (const auto& [index, step] : change.steps) steps.push_back(*step);
  std::sort(steps.begin(), steps.end(),
            [](const core::Step& a, const core::Step& b) { return a.ref.step < b.ref.step; });
  return steps;
}

// The commit is durable already: a log that can't be folded now is folded after a later one.
void SqliteStore::FoldLog() {
  if (log_pages_ < kFoldPages) return;
  const int mode = log_pages_ < kCutPages ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE;
  sqlite3_busy_timeout(database_.handle(), 0);
  int left = log_pages_;
  int folded = 0;
  sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, &left, &folded);
  sqlite3_busy_timeout(database_.handle(), kBusyTimeoutMs);
}

// --- Starting -------------------------------------------------------------------------------------

absl::StatusOr<Loaded> SqliteStore::Load() {
  static const std::string runs_sql =
      fmt::format("SELECT {} FROM run INDEXED BY run_unfinished WHERE {} ORDER BY n", kRunColumns, kUnfinished);
  TP_ASSIGN_OR_RETURN(const Transaction transaction, Transaction::Begin(database_, Transaction::Kind::kRead));
  Loaded loaded;
  loaded.meta = meta_;
  Query run_query(database_, runs_sql);
  TP_ASSIGN_OR_RETURN(std::vector<core::Run> runs, ReadAll(run_query, ReadRun));
  TP_ASSIGN_OR_RETURN(loaded.runs, Complete(database_, std::move(runs)));
  TP_ASSIGN_OR_RETURN(loaded.outbox, SelectAll(database_, kOutboxColumns, "outbox", "id", ReadOutbox));
  TP_ASSIGN_OR_RETURN(loaded.quota_rules, SelectAll(database_, kQuotaRuleColumns, "quota_rule", "id", ReadQuotaRule));
  TP_ASSIGN_OR_RETURN(loaded.storage_use,
                      SelectAll(database_, kStorageUseColumns, "storage_use", "owner", ReadStorageUse));
  TP_ASSIGN_OR_RETURN(loaded.window_holds,
                      SelectAll(database_, kWindowHoldColumns, "window_hold", "series", ReadWindowHold));
  TP_ASSIGN_OR_RETURN(loaded.node_marks,
                      SelectAll(database_, kNodeMarkColumns, "node_mark", "node, card", ReadNodeMark));
  TP_ASSIGN_OR_RETURN(loaded.strikes, SelectAll(database_, kStrikeColumns, "strike", "node, at_us", ReadStrike));
  TP_ASSIGN_OR_RETURN(loaded.corrections,
                      SelectAll(database_, kCorrectionColumns, "correction", "key", ReadCorrection));
  TP_ASSIGN_OR_RETURN(loaded.month_use, SelectMonthUse(database_));
  TP_ASSIGN_OR_RETURN(loaded.hour_use, SelectHourUse(database_));
  return loaded;
}

absl::Status SqliteStore::CommitMeta(const Meta& meta) {
  TP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_, Transaction::Kind::kWrite));
  TP_RETURN_IF_ERROR(WriteMeta(database_, meta));
  TP_RETURN_IF_ERROR(transaction.Commit());
  meta_ = meta;
  return absl::OkStatus();
}

absl::Status SqliteStore::BeginEpoch(int64_t epoch, int64_t next_run) {
  TP_RETURN_IF_ERROR(CheckEpoch(epoch, next_run, meta_));
  Meta meta = meta_;
  meta.epoch = epoch;
  meta.next_run = next_run;
  if (lock_ != nullptr) {
    // The file's own revision may be behind by as much as it was not synced.
    meta.revision = std::max(meta.revision, lock_->state().revision + kRevisionsPerSync);
    TP_RETURN_IF_ERROR(lock_->ReserveRuns(next_run));
  }
  ReachFaultPoint(FaultPoint::kBeforeEpoch);
  TP_RETURN_IF_ERROR(CommitMeta(meta));
  ReachFaultPoint(FaultPoint::kAfterEpoch);
  return lock_ == nullptr ? absl::OkStatus() : lock_->RecordDurably(meta_);
}

}  // namespace tp::store
