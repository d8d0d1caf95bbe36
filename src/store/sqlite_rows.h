// Rows to and from the columns of migrations/, one pair of functions a table. Each write is one or a few
// statements within the caller's transaction; nothing here begins or ends one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ledger.h"
#include "core/quota.h"
#include "core/run.h"
#include "core/step.h"
#include "store/rows.h"
#include "store/sqlite.h"
#include "store/txn.h"

namespace tp::store {

// The condition of the index run_unfinished, which serves only queries that repeat it literally.
inline constexpr std::string_view kUnfinished = "word IN ('QUEUED', 'SUBMITTED', 'PENDING', 'RUNNING', 'PAUSED')";

// Column lists for `SELECT`; ReadX takes them from a row in this order.
extern const std::string_view kRunColumns;
extern const std::string_view kSummaryColumns;
extern const std::string_view kStepColumns;
extern const std::string_view kEventColumns;
extern const std::string_view kWordChangeColumns;
extern const std::string_view kOutboxColumns;
extern const std::string_view kLedgerColumns;
extern const std::string_view kRequestColumns;
extern const std::string_view kTokenColumns;
extern const std::string_view kMetaColumns;
extern const std::string_view kQuotaRuleColumns;
extern const std::string_view kStorageUseColumns;
extern const std::string_view kWindowHoldColumns;
extern const std::string_view kNodeMarkColumns;
extern const std::string_view kStrikeColumns;
extern const std::string_view kCorrectionColumns;

core::Run ReadRun(Columns& columns);  // without its labels
RunSummary ReadSummary(Columns& columns);
core::Step ReadStep(Columns& columns);  // without its attempt
EventRow ReadEvent(Columns& columns);
WordChangeRow ReadWordChange(Columns& columns);
OutboxRow ReadOutbox(Columns& columns);
core::LedgerRow ReadLedger(Columns& columns);
RequestRow ReadRequest(Columns& columns);
TokenRow ReadToken(Columns& columns);
Meta ReadMeta(Columns& columns);
core::QuotaRule ReadQuotaRule(Columns& columns);
StorageUseRow ReadStorageUse(Columns& columns);
WindowHoldRow ReadWindowHold(Columns& columns);
core::NodeMark ReadNodeMark(Columns& columns);
core::Strike ReadStrike(Columns& columns);
core::Correction ReadCorrection(Columns& columns);
inline std::string ReadText(Columns& columns) { return columns.Text(); }

// All rows of the query. Read is one of the functions above.
template <typename Row>
absl::StatusOr<std::vector<Row>> ReadAll(Query& query, Row (*read)(Columns&)) {
  std::vector<Row> rows;
  for (;;) {
    absl::StatusOr<bool> found = query.Next();
    if (!found.ok()) return found.status();
    if (!*found) return rows;
    Columns columns(query);
    rows.push_back(read(columns));
    if (!columns.status().ok()) return columns.status();
  }
}

// The query's first row, or nothing.
template <typename Row>
absl::StatusOr<std::optional<Row>> ReadOne(Query& query, Row (*read)(Columns&)) {
  absl::StatusOr<bool> found = query.Next();
  if (!found.ok()) return found.status();
  if (!*found) return std::nullopt;
  Columns columns(query);
  std::optional<Row> row = read(columns);
  if (!columns.status().ok()) return columns.status();
  return row;
}

// The runs with their labels, steps and attempts, in the order of `runs`; a fixed number of statements.
absl::StatusOr<std::vector<core::RunWithSteps>> Complete(Database& database, std::vector<core::Run> runs);

// Of the newest two months in the ledger.
absl::StatusOr<std::vector<MonthUseRow>> SelectMonthUse(Database& database);
absl::StatusOr<std::vector<HourUseRow>> SelectHourUse(Database& database);

// Inserts or replaces. `summary` counts for a run that is new; WriteSummary changes it afterwards.
absl::Status WriteRun(Database& database, const core::Run& run, const RunSummary& summary, absl::Time changed_at);
absl::Status WriteSummary(Database& database, int64_t n, const RunSummary& summary, absl::Time changed_at);
absl::Status WriteStep(Database& database, const core::Step& step);
absl::Status WriteSnapshot(Database& database, const SnapshotRow& row);
absl::Status WriteToken(Database& database, const TokenRow& row);
absl::Status WriteQuotaRule(Database& database, const core::QuotaRule& rule);
absl::Status WriteStorageUse(Database& database, const StorageUseRow& row);
absl::Status WriteWindowHold(Database& database, const WindowHoldRow& row);
absl::Status WriteNodeMark(Database& database, const core::NodeMark& mark);
absl::Status DeleteNodeMark(Database& database, const core::NodePart& part);
absl::Status WriteStrike(Database& database, const core::Strike& strike);
absl::Status DeleteStrikes(Database& database, const std::string& node);
absl::Status WriteCorrection(Database& database, const core::Correction& row);

// Inserts; a row that is there already is an error.
absl::Status WriteEvent(Database& database, const EventRow& row);
absl::Status WriteWordChange(Database& database, const WordChangeRow& row);
absl::Status WriteOutbox(Database& database, const OutboxRow& row);
absl::Status WriteLedger(Database& database, const core::LedgerRow& row);
absl::Status WriteRequest(Database& database, const RequestRow& row);
absl::Status WriteAudit(Database& database, const AuditRow& row);

absl::Status DeleteOutbox(Database& database, const int64_t& id);
absl::Status DeleteQuotaRule(Database& database, const int64_t& id);
absl::Status DeleteCorrection(Database& database, const std::string& key);
absl::Status WriteMeta(Database& database, const Meta& meta);

}  // namespace tp::store
