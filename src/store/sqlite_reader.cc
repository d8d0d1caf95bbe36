#include "store/sqlite_reader.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "store/micros.h"
#include "store/queued_steps.h"
#include "store/sqlite_rows.h"
#include "store/usage.h"
#include "store/where.h"

namespace tp::store {
namespace {

// Of a run that may still be launched or cloned.
constexpr std::string_view kNeedsSnapshot = "snapshot_available = 1 AND removed_at_us IS NULL AND snapshot_id <> ''";

constexpr size_t kIdleConnections = 8;

absl::Status CheckLimit(int limit) {
  if (limit > 0) return absl::OkStatus();
  return InvalidArgument("a page of {} rows was asked for: ask for at least one", limit);
}

template <typename Row>
absl::StatusOr<std::vector<Row>> SelectAll(Database& database, std::string_view columns, std::string_view from,
                                           const Where& where, std::string_view order, int64_t limit,
                                           Row (*read)(Columns&)) {
  Query query(database, fmt::format("SELECT {} FROM {}{} ORDER BY {} LIMIT ?", columns, from, where.sql(), order));
  where.BindTo(query);
  query.Bind(limit);
  return ReadAll(query, read);
}

template <typename Row>
absl::StatusOr<std::optional<Row>> SelectOne(Database& database, std::string_view columns, std::string_view from,
                                             const Where& where, Row (*read)(Columns&)) {
  Query query(database, fmt::format("SELECT {} FROM {}{}", columns, from, where.sql()));
  where.BindTo(query);
  return ReadOne(query, read);
}

// --- Filters --------------------------------------------------------------------------------------

// Two index ranges instead of a scan: the unfinished runs, and those whose word changed later.
void AddChangedAfter(Where& where, const RunFilter& filter) {
  const std::string owner = filter.owner ? " AND owner = ?" : "";
  std::vector<Where::Value> values;
  if (filter.owner) values.emplace_back(*filter.owner);
  values.emplace_back(ToMicros(*filter.changed_after));
  if (filter.owner) values.emplace_back(*filter.owner);
  where.Add(
      fmt::format("n IN (SELECT n FROM run WHERE {}{} UNION ALL SELECT n FROM run WHERE word_changed_at_us > ?{})",
                  kUnfinished, owner, owner),
      std::move(values));
}

// The unfinished are few, whatever there is besides: they are looked up first. For the others a page is
// soon full in the order of the list.
void AddWords(Where& where, const std::vector<core::RunWord>& words) {
  if (words.size() == 1) {
    where.Add("word = ?", {std::string(Word(words.front()))});
    return;
  }
  if (std::none_of(words.begin(), words.end(), [](core::RunWord word) { return core::IsTerminal(word); })) {
    where.Add(fmt::format("n IN (SELECT n FROM run WHERE {})", kUnfinished));
  }
  std::string parameters;
  std::vector<Where::Value> values;
  for (const core::RunWord word : words) {
    parameters += parameters.empty() ? "?" : ", ?";
    values.emplace_back(std::string(Word(word)));
  }
  where.Add(fmt::format("word IN ({})", parameters), std::move(values));
}

Where WhereOf(const RunFilter& filter, std::optional<int64_t> before) {
  Where where;
  if (before) where.Add("n < ?", {*before});
  if (!filter.with_removed) where.Add("removed_at_us IS NULL");
  if (filter.owner) where.Add("owner = ?", {*filter.owner});
  if (filter.project) where.Add("project = ?", {*filter.project});
  if (!filter.words.empty()) AddWords(where, filter.words);
  if (filter.changed_after) AddChangedAfter(where, filter);
  for (const auto& [key, value] : filter.labels) {
    where.Add("n IN (SELECT run FROM run_label WHERE key = ? AND value = ?)", {key, value});
  }
  return where;
}

// Wider than Matches: what it lets through in error contributes nothing.
Where WhereOf(const UsageFilter& filter) {
  Where where;
  if (filter.owner) where.Add("owner = ?", {*filter.owner});
  if (filter.project) where.Add("project = ?", {*filter.project});
  if (filter.run) where.Add("run = ?", {*filter.run});
  const MsRange range = RangeOf(filter);
  if (filter.from) where.Add("max(start_unix_ms, end_unix_ms) >= ?", {range.from_unix_ms});
  if (filter.to) where.Add("min(start_unix_ms, end_unix_ms) < ?", {range.to_unix_ms});
  return where;
}

struct ListedRun {
  core::Run run;
  RunSummary summary;
};

ListedRun ReadListed(Columns& columns) {
  ListedRun row;
  row.run = ReadRun(columns);
  row.summary = ReadSummary(columns);
  return row;
}

int64_t ReadNumber(Columns& columns) { return columns.Int64(); }

// What usage is summed from, without the text that only an audit needs.
constexpr std::string_view kSummedColumns =
    "run, series, profile, owner, project, month, cards, start_unix_ms, end_unix_ms";

core::LedgerRow ReadSummed(Columns& columns) {
  core::LedgerRow row;
  row.run = columns.Int64();
  row.series = columns.Text();
  row.profile = columns.Text();
  row.owner = columns.Text();
  row.project = columns.Text();
  row.month = columns.Text();
  row.cards = columns.Int64();
  row.start_unix_ms = columns.Int64();
  row.end_unix_ms = columns.Int64();
  return row;
}

absl::StatusOr<Meta> SelectMeta(Database& database) {
  TP_ASSIGN_OR_RETURN(const std::optional<Meta> meta, SelectOne(database, kMetaColumns, "meta", {}, ReadMeta));
  if (meta) return *meta;
  return Error(absl::StatusCode::kDataLoss, "{}: its counters are missing: restore a backup", database.path());
}

}  // namespace

// --- Connections ----------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<SqliteReader>> SqliteReader::Open(const std::string& path) {
  std::unique_ptr<SqliteReader> reader(new SqliteReader(path));
  TP_RETURN_IF_ERROR(reader->Revision().status());
  return reader;
}

absl::StatusOr<Database> SqliteReader::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Database database = std::move(idle_.back());
      idle_.pop_back();
      return database;
    }
  }
  return Database::Open(path_, Access::kReadOnly);
}

void SqliteReader::GiveBack(Database database, const QueryCost& before) {
  const std::lock_guard lock(mutex_);
  cost_.statements += database.cost().statements - before.statements;
  cost_.steps += database.cost().steps - before.steps;
  if (idle_.size() < kIdleConnections) idle_.push_back(std::move(database));
}

QueryCost SqliteReader::cost() const {
  const std::lock_guard lock(mutex_);
  return cost_;
}

template <typename T>
absl::StatusOr<T> SqliteReader::Read(absl::FunctionRef<absl::StatusOr<T>(Database&)> read) {
  TP_ASSIGN_OR_RETURN(Database database, Take());
  const QueryCost before = database.cost();
  absl::StatusOr<T> result;
  {
    TP_ASSIGN_OR_RETURN(const Transaction transaction, Transaction::Begin(database, Transaction::Kind::kRead));
    result = read(database);
  }
  GiveBack(std::move(database), before);
  return result;
}

// --- Runs -----------------------------------------------------------------------------------------

absl::StatusOr<core::RunWithSteps> SqliteReader::GetRun(int64_t n) {
  return Read<core::RunWithSteps>([&](Database& database) -> absl::StatusOr<core::RunWithSteps> {
    Where where;
    where.Add("n = ?", {n});
    TP_ASSIGN_OR_RETURN(std::optional<core::Run> run, SelectOne(database, kRunColumns, "run", where, ReadRun));
    if (!run) return NotFound("there is no run {}", n);
    TP_ASSIGN_OR_RETURN(std::vector<core::RunWithSteps> complete, Complete(database, {*std::move(run)}));
    return std::move(complete.front());
  });
}

absl::StatusOr<int64_t> SqliteReader::LastRun(const std::string& owner) {
  return Read<int64_t>([&](Database& database) -> absl::StatusOr<int64_t> {
    Where where;
    where.Add("owner = ? AND removed_at_us IS NULL", {owner});
    TP_ASSIGN_OR_RETURN(const std::vector<int64_t> last,
                        SelectAll(database, "n", "run", where, "n DESC", 1, ReadNumber));
    if (last.empty()) return NotFound("{} has no run yet", owner);
    return last.front();
  });
}

absl::StatusOr<RunPage> SqliteReader::ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  return Read<RunPage>([&](Database& database) -> absl::StatusOr<RunPage> {
    static const std::string columns = fmt::format("{}, {}", kRunColumns, kSummaryColumns);
    // One more than asked for, to know whether there is a next page.
    TP_ASSIGN_OR_RETURN(std::vector<ListedRun> listed, SelectAll(database, columns, "run", WhereOf(filter, before),
                                                                 "n DESC", int64_t{limit} + 1, ReadListed));
    RunPage page;
    if (listed.size() > static_cast<size_t>(limit)) {
      listed.pop_back();
      page.next_before = listed.back().run.n;
    }
    std::vector<core::Run> runs;
    for (ListedRun& row : listed) {
      runs.push_back(std::move(row.run));
      page.summaries.push_back(row.summary);
    }
    TP_ASSIGN_OR_RETURN(page.runs, Complete(database, std::move(runs)));
    return page;
  });
}

absl::StatusOr<std::vector<QueuedStepRow>> SqliteReader::QueuedSteps() {
  return Read<std::vector<QueuedStepRow>>(SelectQueuedSteps);
}

// --- Events ---------------------------------------------------------------------------------------

absl::StatusOr<std::vector<EventRow>> SqliteReader::Events(int64_t run, int64_t after_revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  return Read<std::vector<EventRow>>([&](Database& database) {
    Where where;
    where.Add("run = ? AND revision > ?", {run, after_revision});
    return SelectAll(database, kEventColumns, "event", where, "revision", limit, ReadEvent);
  });
}

absl::StatusOr<std::vector<EventRow>> SqliteReader::EventsAfter(int64_t revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  return Read<std::vector<EventRow>>([&](Database& database) {
    Where where;
    where.Add("revision > ?", {revision});
    return SelectAll(database, kEventColumns, "event", where, "revision", limit, ReadEvent);
  });
}

absl::StatusOr<std::vector<WordChange>> SqliteReader::WordChangesAfter(int64_t revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  return Read<std::vector<WordChange>>([&](Database& database) -> absl::StatusOr<std::vector<WordChange>> {
    Where where;
    where.Add("revision > ?", {revision});
    TP_ASSIGN_OR_RETURN(std::vector<WordChangeRow> rows, SelectAll(database, kWordChangeColumns, "word_change", where,
                                                                   "revision", limit, ReadWordChange));
    std::vector<WordChange> changes;
    for (WordChangeRow& row : rows) {
      Where by_number;
      by_number.Add("n = ?", {row.run});
      TP_ASSIGN_OR_RETURN(std::optional<core::Run> run, SelectOne(database, kRunColumns, "run", by_number, ReadRun));
      if (!run) return Error(absl::StatusCode::kDataLoss, "{}: there is no run {}", database.path(), row.run);
      changes.push_back({std::move(row), *std::move(run)});
    }
    return changes;
  });
}

absl::StatusOr<int64_t> SqliteReader::Revision() {
  TP_ASSIGN_OR_RETURN(const Meta meta, ReadMeta());
  return meta.revision;
}

absl::StatusOr<Meta> SqliteReader::ReadMeta() { return Read<Meta>(SelectMeta); }

// --- Requests, snapshots, tokens ------------------------------------------------------------------

absl::StatusOr<std::optional<RequestRow>> SqliteReader::FindRequest(const std::string& principal,
                                                                    const std::string& request_id) {
  return Read<std::optional<RequestRow>>([&](Database& database) {
    Where where;
    where.Add("principal = ? AND request_id = ?", {principal, request_id});
    return SelectOne(database, kRequestColumns, "request", where, ReadRequest);
  });
}

// From one owner to the next in the index, whatever number of runs they have.
absl::StatusOr<std::vector<std::string>> SqliteReader::Owners() {
  return Read<std::vector<std::string>>([&](Database& database) {
    Query query(database,
                "WITH RECURSIVE owners (owner) AS (SELECT min(owner) FROM run UNION ALL "
                "SELECT (SELECT min(run.owner) FROM run WHERE run.owner > owners.owner) FROM owners "
                "WHERE owners.owner IS NOT NULL) SELECT owner FROM owners WHERE owner IS NOT NULL");
    return ReadAll(query, ReadText);
  });
}

absl::StatusOr<std::vector<std::string>> SqliteReader::NeededSnapshots() {
  return Read<std::vector<std::string>>([&](Database& database) {
    static const std::string sql = fmt::format("SELECT DISTINCT snapshot_id FROM run WHERE {}", kNeedsSnapshot);
    Query query(database, sql);
    return ReadAll(query, ReadText);
  });
}

absl::StatusOr<std::vector<std::string>> SqliteReader::SnapshotsOf(const std::string& owner,
                                                                   absl::Time committed_after) {
  return Read<std::vector<std::string>>([&](Database& database) {
    static const std::string sql = fmt::format(
        "SELECT snapshot_id FROM run WHERE owner = ? AND {} "
        "UNION SELECT id FROM snapshot WHERE owner = ? AND created_at_us > ?",
        kNeedsSnapshot);
    Query query(database, sql);
    query.Bind(owner, owner, committed_after);
    return ReadAll(query, ReadText);
  });
}

absl::StatusOr<std::optional<TokenRow>> SqliteReader::FindToken(const std::string& id) {
  return Read<std::optional<TokenRow>>([&](Database& database) {
    Where where;
    where.Add("id = ?", {id});
    return SelectOne(database, kTokenColumns, "token", where, ReadToken);
  });
}

// --- Ledger ---------------------------------------------------------------------------------------

absl::StatusOr<std::vector<UsageRow>> SqliteReader::Usage(const UsageFilter& filter, UsageKey by) {
  return Read<std::vector<UsageRow>>([&](Database& database) -> absl::StatusOr<std::vector<UsageRow>> {
    const Where where = WhereOf(filter);
    Query query(database, fmt::format("SELECT {} FROM ledger{}", kSummedColumns, where.sql()));
    where.BindTo(query);
    UsageSum sum(filter, by);
    for (;;) {
      TP_ASSIGN_OR_RETURN(const bool found, query.Next());
      if (!found) return sum.Rows();
      Columns columns(query);
      sum.Add(ReadSummed(columns));
    }
  });
}

absl::StatusOr<std::vector<core::LedgerRow>> SqliteReader::Ledger(const UsageFilter& filter, int64_t after_seq,
                                                                  int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  return Read<std::vector<core::LedgerRow>>([&](Database& database) {
    Where where = WhereOf(filter);
    where.Add("seq > ?", {after_seq});
    return SelectAll(database, kLedgerColumns, "ledger", where, "seq", limit, ReadLedger);
  });
}

absl::StatusOr<std::vector<MonthUseRow>> SqliteReader::MonthUse() {
  return Read<std::vector<MonthUseRow>>(SelectMonthUse);
}

}  // namespace tp::store
