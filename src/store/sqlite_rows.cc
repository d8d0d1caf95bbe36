#include "store/sqlite_rows.h"

#include <map>

#include "base/status.h"
#include "store/codec.h"

namespace tp::store {
namespace {

constexpr std::string_view kAttemptColumns =
    "run, step, number, key, nonce, created_at_us, handover, claim, granted_at_us, engine_end, freed, shape, "
    "placement, ranks, meter, ending, sight";

// --- SQL from the column lists --------------------------------------------------------------------

std::vector<std::string> Names(std::string_view columns) {
  std::vector<std::string> names;
  while (!columns.empty()) {
    const size_t comma = columns.find(", ");
    names.emplace_back(columns.substr(0, comma));
    columns = comma == std::string_view::npos ? std::string_view() : columns.substr(comma + 2);
  }
  return names;
}

std::string InsertSql(std::string_view table, std::string_view columns) {
  std::string parameters = "?";
  for (size_t i = 1; i < Names(columns).size(); ++i) parameters += ", ?";
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns, parameters);
}

// `keep` are columns that an existing row keeps.
std::string UpsertSql(std::string_view table, std::string_view columns, std::string_view key,
                      std::string_view keep = {}) {
  std::vector<std::string> fixed = Names(key);
  for (std::string& name : Names(keep)) fixed.push_back(std::move(name));
  std::string changes;
  for (const std::string& name : Names(columns)) {
    if (std::find(fixed.begin(), fixed.end(), name) != fixed.end()) continue;
    changes += fmt::format("{}{} = excluded.{}", changes.empty() ? "" : ", ", name, name);
  }
  return fmt::format("{} ON CONFLICT ({}) DO UPDATE SET {}", InsertSql(table, columns), key, changes);
}

// --- JSON columns ---------------------------------------------------------------------------------

template <typename T>
T JsonOf(Columns& columns) {
  absl::StatusOr<T> value = Decode<T>(columns.Text());
  if (value.ok()) return *std::move(value);
  columns.Damaged(Message(value.status()));
  return T{};
}

template <typename T>
std::optional<T> OptionalJson(Columns& columns) {
  const std::optional<std::string> text = columns.OptionalText();
  if (!text) return std::nullopt;
  absl::StatusOr<T> value = Decode<T>(*text);
  if (value.ok()) return *std::move(value);
  columns.Damaged(Message(value.status()));
  return std::nullopt;
}

template <typename T>
std::optional<std::string> OptionalEncode(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return Encode(*value);
}

// --- Attempts -------------------------------------------------------------------------------------

struct AttemptOfStep {
  core::StepRef step;
  core::Attempt attempt;
};

AttemptOfStep ReadAttempt(Columns& columns) {
  AttemptOfStep row;
  row.step.run = columns.Int64();
  row.step.step = columns.Int32();
  core::Attempt& attempt = row.attempt;
  attempt.number = columns.Int32();
  attempt.key = columns.Text();
  attempt.nonce = columns.Text();
  attempt.created_at = columns.Time();
  attempt.handover = columns.Enum<core::Handover>();
  attempt.claim = columns.Enum<Claim>();
  attempt.granted_at = columns.OptionalTime();
  attempt.engine_end = columns.Enum<EngineEnd>();
  attempt.freed = columns.Bool();
  attempt.shape = JsonOf<core::ResolvedShape>(columns);
  attempt.placement = JsonOf<std::vector<PoolPlacement>>(columns);
  attempt.ranks = JsonOf<std::vector<RankObservation>>(columns);
  attempt.meter = OptionalJson<core::Meter>(columns);
  attempt.ending = OptionalJson<core::Ending>(columns);
  attempt.sight = JsonOf<core::Sight>(columns);
  return row;
}

absl::Status WriteAttempt(Database& database, core::StepRef step, const core::Attempt& attempt) {
  static const std::string sql = UpsertSql("attempt", kAttemptColumns, "run, step");
  return Query(database, sql)
      .Bind(step.run, step.step, attempt.number, attempt.key, attempt.nonce, attempt.created_at, attempt.handover,
            attempt.claim, attempt.granted_at, attempt.engine_end, attempt.freed, Encode(attempt.shape),
            Encode(attempt.placement), Encode(attempt.ranks), OptionalEncode(attempt.meter),
            OptionalEncode(attempt.ending), Encode(attempt.sight))
      .Run();
}

absl::Status DeleteAttempt(Database& database, core::StepRef step) {
  return Query(database, "DELETE FROM attempt WHERE run = ? AND step = ?").Bind(step.run, step.step).Run();
}

// --- Parts of runs --------------------------------------------------------------------------------

absl::Status WriteLabels(Database& database, const core::Run& run) {
  TP_RETURN_IF_ERROR(Query(database, "DELETE FROM run_label WHERE run = ?").Bind(run.n).Run());
  for (const auto& [key, value] : run.labels) {
    TP_RETURN_IF_ERROR(Query(database, "INSERT INTO run_label VALUES (?, ?, ?)").Bind(run.n, key, value).Run());
  }
  return absl::OkStatus();
}

struct LabelOfRun {
  int64_t run = 0;
  std::string key;
  std::string value;
};

LabelOfRun ReadLabel(Columns& columns) {
  LabelOfRun row;
  row.run = columns.Int64();
  row.key = columns.Text();
  row.value = columns.Text();
  return row;
}

// The runs being put together, by number.
using RunsByNumber = std::map<int64_t, core::RunWithSteps*>;

// A JSON list, so that one prepared statement serves any number of runs.
std::string Numbers(const RunsByNumber& runs) {
  std::string numbers;
  for (const auto& [n, run] : runs) numbers += fmt::format("{}{}", numbers.empty() ? "[" : ",", n);
  return numbers.empty() ? "[]" : numbers + "]";
}

template <typename Row>
absl::StatusOr<std::vector<Row>> PartsOf(Database& database, std::string_view sql, const std::string& numbers,
                                         Row (*read)(Columns&)) {
  Query query(database, sql);
  query.Bind(numbers);
  return ReadAll(query, read);
}

absl::Status Incomplete(const Database& database, core::StepRef step) {
  return Error(absl::StatusCode::kDataLoss, "{}: run {} has no step {}: restore a backup", database.path(), step.run,
               step.step);
}

absl::Status AddSteps(Database& database, const RunsByNumber& runs, const std::string& numbers) {
  static const std::string sql =
      fmt::format("SELECT {} FROM step WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, step", kStepColumns);
  TP_ASSIGN_OR_RETURN(std::vector<core::Step> rows, PartsOf(database, sql, numbers, ReadStep));
  for (core::Step& step : rows) {
    std::vector<core::Step>& steps = runs.at(step.ref.run)->steps;
    const core::StepRef expected{step.ref.run, static_cast<int32_t>(steps.size())};
    if (step.ref != expected) return Incomplete(database, expected);
    steps.push_back(std::move(step));
  }
  for (const auto& [n, run] : runs) {
    if (run->steps.empty()) return Incomplete(database, {n, 0});
  }
  return absl::OkStatus();
}

absl::Status AddAttempts(Database& database, const RunsByNumber& runs, const std::string& numbers) {
  static const std::string sql =
      fmt::format("SELECT {} FROM attempt WHERE run IN (SELECT value FROM json_each(?))", kAttemptColumns);
  TP_ASSIGN_OR_RETURN(std::vector<AttemptOfStep> rows, PartsOf(database, sql, numbers, ReadAttempt));
  for (AttemptOfStep& row : rows) {
    std::vector<core::Step>& steps = runs.at(row.step.run)->steps;
    const auto index = static_cast<size_t>(row.step.step);
    if (index >= steps.size()) return Incomplete(database, row.step);
    steps[index].attempt = std::move(row.attempt);
  }
  return absl::OkStatus();
}

absl::Status AddLabels(Database& database, const RunsByNumber& runs, const std::string& numbers) {
  constexpr std::string_view kSql =
      "SELECT run, key, value FROM run_label WHERE run IN (SELECT value FROM json_each(?))";
  TP_ASSIGN_OR_RETURN(std::vector<LabelOfRun> rows, PartsOf(database, kSql, numbers, ReadLabel));
  for (LabelOfRun& row : rows) runs.at(row.run)->run.labels[std::move(row.key)] = std::move(row.value);
  return absl::OkStatus();
}

}  // namespace

// --- Runs -----------------------------------------------------------------------------------------

const std::string_view kRunColumns =
    "n, slug, owner, project, snapshot_id, priority, created_at_us, snapshot_available, removed_at_us, "
    "after_runs, array_limit, notify";

core::Run ReadRun(Columns& columns) {
  core::Run run;
  run.n = columns.Int64();
  run.slug = columns.Text();
  run.owner = columns.Text();
  run.project = columns.Text();
  run.snapshot_id = columns.Text();
  run.priority = columns.Int32();
  run.created_at = columns.Time();
  run.snapshot_available = columns.Bool();
  run.removed_at = columns.OptionalTime();
  run.after = JsonOf<std::vector<core::RunDependency>>(columns);
  run.array_limit = columns.Int32();
  run.notify = JsonOf<std::vector<core::Notice>>(columns);
  return run;
}

const std::string_view kSummaryColumns = "word, retry_count";

RunSummary ReadSummary(Columns& columns) {
  RunSummary summary;
  summary.word = columns.Enum<core::RunWord>();
  summary.retry_count = columns.Int32();
  return summary;
}

absl::Status WriteRun(Database& database, const core::Run& run, const RunSummary& summary, absl::Time changed_at) {
  const std::string kept = fmt::format("{}, word_changed_at_us", kSummaryColumns);
  static const std::string sql = UpsertSql("run", fmt::format("{}, {}", kRunColumns, kept), "n", kept);
  TP_RETURN_IF_ERROR(Query(database, sql)
                         .Bind(run.n, run.slug, run.owner, run.project, run.snapshot_id, run.priority, run.created_at,
                               run.snapshot_available, run.removed_at, Encode(run.after), run.array_limit,
                               Encode(run.notify), summary.word, summary.retry_count, changed_at)
                         .Run());
  return WriteLabels(database, run);
}

absl::Status WriteSummary(Database& database, int64_t n, const RunSummary& summary, absl::Time changed_at) {
  return Query(database,
               "UPDATE run SET word_changed_at_us = iif(word = ?1, word_changed_at_us, ?2), word = ?1, "
               "retry_count = ?3 WHERE n = ?4 AND (word <> ?1 OR retry_count <> ?3)")
      .Bind(summary.word, changed_at, summary.retry_count, n)
      .Run();
}

absl::StatusOr<std::vector<core::RunWithSteps>> Complete(Database& database, std::vector<core::Run> runs) {
  std::vector<core::RunWithSteps> complete(runs.size());
  RunsByNumber by_number;
  for (size_t i = 0; i < runs.size(); ++i) {
    complete[i].run = std::move(runs[i]);
    by_number[complete[i].run.n] = &complete[i];
  }
  const std::string numbers = Numbers(by_number);
  TP_RETURN_IF_ERROR(AddLabels(database, by_number, numbers));
  TP_RETURN_IF_ERROR(AddSteps(database, by_number, numbers));
  TP_RETURN_IF_ERROR(AddAttempts(database, by_number, numbers));
  return complete;
}

// --- Steps ----------------------------------------------------------------------------------------

const std::string_view kStepColumns =
    "run, step, state, created_at_us, entered_at_us, stop_requested, pause_owner, pause_admin, pause_window, "
    "hold_owner, hold_admin, hold_shape, attempts, retry_count, user_retries_used, infrastructure_retries_used, "
    "relaunches, cooldown_until_us, backoff_until_us, backoff_reason, avoid_node, ran_us, ever_ran, failure_kind, "
    "failure_sentence, exit, spec, past";

core::Step ReadStep(Columns& columns) {
  core::Step step;
  step.ref.run = columns.Int64();
  step.ref.step = columns.Int32();
  step.state = columns.Enum<core::JobState>();
  step.created_at = columns.Time();
  step.entered_at = columns.Time();
  step.stop_requested = columns.Bool();
  step.pause.owner = columns.Bool();
  step.pause.admin = columns.Bool();
  step.pause.window = columns.Bool();
  step.hold.owner = columns.Bool();
  step.hold.admin = columns.Bool();
  step.hold.shape = columns.Text();
  step.attempts = columns.Int32();
  step.retry_count = columns.Int32();
  step.user_retries_used = columns.Int32();
  step.infrastructure_retries_used = columns.Int32();
  step.relaunches = columns.Int32();
  step.cooldown_until = columns.OptionalTime();
  step.backoff_until = columns.OptionalTime();
  step.backoff_reason = columns.Text();
  step.avoid_node = columns.Text();
  step.ran = columns.Duration();
  step.ever_ran = columns.Bool();
  const auto failure_kind = columns.OptionalEnum<core::FailureKind>();
  std::string failure_sentence = columns.Text();
  if (failure_kind) step.failure = core::Failure{*failure_kind, std::move(failure_sentence)};
  step.exit = columns.Text();
  step.spec = JsonOf<core::StepSpec>(columns);
  step.past = JsonOf<std::vector<core::PastAttempt>>(columns);
  return step;
}

absl::Status WriteStep(Database& database, const core::Step& step) {
  static const std::string sql = UpsertSql("step", kStepColumns, "run, step");
  std::optional<core::FailureKind> failure_kind;
  if (step.failure) failure_kind = step.failure->kind;
  const std::string failure_sentence = step.failure ? step.failure->sentence : std::string();
  TP_RETURN_IF_ERROR(Query(database, sql)
                         .Bind(step.ref.run, step.ref.step, step.state, step.created_at, step.entered_at,
                               step.stop_requested, step.pause.owner, step.pause.admin, step.pause.window,
                               step.hold.owner, step.hold.admin, step.hold.shape, step.attempts, step.retry_count,
                               step.user_retries_used, step.infrastructure_retries_used, step.relaunches,
                               step.cooldown_until, step.backoff_until, step.backoff_reason, step.avoid_node, step.ran,
                               step.ever_ran, failure_kind, failure_sentence, step.exit, Encode(step.spec),
                               Encode(step.past))
                         .Run());
  return step.attempt ? WriteAttempt(database, step.ref, *step.attempt) : DeleteAttempt(database, step.ref);
}

// --- Events, outbox -------------------------------------------------------------------------------

const std::string_view kWordChangeColumns = "revision, at_us, run, step, from_word, to_word, retry_count, reason";

WordChangeRow ReadWordChange(Columns& columns) {
  WordChangeRow row;
  row.revision = columns.Int64();
  row.at = columns.Time();
  row.run = columns.Int64();
  row.step = columns.Text();
  row.from = columns.Enum<core::RunWord>();
  row.to = columns.Enum<core::RunWord>();
  row.retry_count = columns.Int32();
  row.reason = columns.Text();
  return row;
}

absl::Status WriteWordChange(Database& database, const WordChangeRow& row) {
  static const std::string sql = InsertSql("word_change", kWordChangeColumns);
  return Query(database, sql)
      .Bind(row.revision, row.at, row.run, row.step, row.from, row.to, row.retry_count, row.reason)
      .Run();
}

const std::string_view kEventColumns = "revision, at_us, run, step, attempt, event, from_state, to_state, note";

EventRow ReadEvent(Columns& columns) {
  EventRow row;
  row.revision = columns.Int64();
  row.at = columns.Time();
  row.run = columns.Int64();
  row.step = columns.Int32();
  row.attempt = columns.Int32();
  row.event = columns.Text();
  row.from = columns.Enum<core::JobState>();
  row.to = columns.Enum<core::JobState>();
  row.note = columns.Text();
  return row;
}

absl::Status WriteEvent(Database& database, const EventRow& row) {
  static const std::string sql = InsertSql("event", kEventColumns);
  return Query(database, sql)
      .Bind(row.revision, row.at, row.run, row.step, row.attempt, row.event, row.from, row.to, row.note)
      .Run();
}

const std::string_view kOutboxColumns = "id, run, step, attempt, kind, level, backend, target, created_at_us";

OutboxRow ReadOutbox(Columns& columns) {
  OutboxRow row;
  row.id = columns.Int64();
  row.attempt.step.run = columns.Int64();
  row.attempt.step.step = columns.Int32();
  row.attempt.attempt = columns.Int32();
  row.kind = columns.Enum<OutboxKind>();
  row.level = columns.Enum<StopLevel>();
  row.backend = columns.Text();
  row.target = JsonOf<AttemptTarget>(columns);
  row.created_at = columns.Time();
  return row;
}

absl::Status WriteOutbox(Database& database, const OutboxRow& row) {
  static const std::string sql = InsertSql("outbox", kOutboxColumns);
  return Query(database, sql)
      .Bind(row.id, row.attempt.step.run, row.attempt.step.step, row.attempt.attempt, row.kind, row.level, row.backend,
            Encode(row.target), row.created_at)
      .Run();
}

absl::Status DeleteOutbox(Database& database, const int64_t& id) {
  return Query(database, "DELETE FROM outbox WHERE id = ?").Bind(id).Run();
}

// --- Ledger ---------------------------------------------------------------------------------------

const std::string_view kLedgerColumns =
    "seq, run, step, attempt, pool, series, profile, owner, project, month, cards, start_unix_ms, end_unix_ms, gpu_ms, "
    "flagged, delta, evidence, previous_hash, hash";

core::LedgerRow ReadLedger(Columns& columns) {
  core::LedgerRow row;
  row.seq = columns.Int64();
  row.run = columns.Int64();
  row.step = columns.Int32();
  row.attempt = columns.Int32();
  row.pool = columns.Int32();
  row.series = columns.Text();
  row.profile = columns.Text();
  row.owner = columns.Text();
  row.project = columns.Text();
  row.month = columns.Text();
  row.cards = columns.Int64();
  row.start_unix_ms = columns.Int64();
  row.end_unix_ms = columns.Int64();
  row.gpu_ms = columns.Int64();
  row.flagged = columns.Bool();
  row.delta = columns.Bool();
  row.evidence = columns.Text();
  row.previous_hash = columns.Text();
  row.hash = columns.Text();
  return row;
}

absl::Status WriteLedger(Database& database, const core::LedgerRow& row) {
  static const std::string sql = InsertSql("ledger", kLedgerColumns);
  return Query(database, sql)
      .Bind(row.seq, row.run, row.step, row.attempt, row.pool, row.series, row.profile, row.owner, row.project,
            row.month, row.cards, row.start_unix_ms, row.end_unix_ms, row.gpu_ms, row.flagged, row.delta, row.evidence,
            row.previous_hash, row.hash)
      .Run();
}

namespace {

MonthUseRow ReadMonthUse(Columns& columns) {
  MonthUseRow row;
  row.month = columns.Text();
  row.owner = columns.Text();
  row.gpu_ms = columns.Int64();
  return row;
}

HourUseRow ReadHourUse(Columns& columns) {
  HourUseRow row;
  row.hour_unix_ms = columns.Int64();
  row.owner = columns.Text();
  row.gpu_ms = columns.Int64();
  return row;
}

// Two seeks in the index find the months.
constexpr std::string_view kNewestMonths =
    "month >= coalesce((SELECT max(month) FROM ledger WHERE month < (SELECT max(month) FROM ledger)), '')";

}  // namespace

absl::StatusOr<std::vector<MonthUseRow>> SelectMonthUse(Database& database) {
  static const std::string sql =
      fmt::format("SELECT month, owner, sum(gpu_ms) FROM ledger WHERE {} GROUP BY month, owner ORDER BY month, owner",
                  kNewestMonths);
  Query query(database, sql);
  return ReadAll(query, ReadMonthUse);
}

absl::StatusOr<std::vector<HourUseRow>> SelectHourUse(Database& database) {
  static const std::string sql = fmt::format(
      "SELECT end_unix_ms - end_unix_ms % {} AS hour, owner, sum(gpu_ms) FROM ledger WHERE {} AND gpu_ms != 0 "
      "GROUP BY hour, owner ORDER BY hour, owner",
      core::kHourMs, kNewestMonths);
  Query query(database, sql);
  return ReadAll(query, ReadHourUse);
}

// --- Corrections ----------------------------------------------------------------------------------

const std::string_view kCorrectionColumns =
    "key, run, step, attempt, owner, project, backend, target, placement, ranks, meter, created_at_us";

core::Correction ReadCorrection(Columns& columns) {
  core::Correction row;
  const std::string key = columns.Text();
  row.attempt.step.run = columns.Int64();
  row.attempt.step.step = columns.Int32();
  row.attempt.attempt = columns.Int32();
  row.owner = columns.Text();
  row.project = columns.Text();
  row.backend = columns.Text();
  row.target = JsonOf<AttemptTarget>(columns);
  row.placement = JsonOf<std::vector<PoolPlacement>>(columns);
  row.ranks = JsonOf<std::vector<RankObservation>>(columns);
  row.meter = JsonOf<core::Meter>(columns);
  row.created_at = columns.Time();
  if (row.target.key != key) columns.Damaged("its key is another one than its target's");
  return row;
}

absl::Status WriteCorrection(Database& database, const core::Correction& row) {
  static const std::string sql = UpsertSql("correction", kCorrectionColumns, "key");
  return Query(database, sql)
      .Bind(row.target.key, row.attempt.step.run, row.attempt.step.step, row.attempt.attempt, row.owner, row.project,
            row.backend, Encode(row.target), Encode(row.placement), Encode(row.ranks), Encode(row.meter),
            row.created_at)
      .Run();
}

absl::Status DeleteCorrection(Database& database, const std::string& key) {
  return Query(database, "DELETE FROM correction WHERE key = ?").Bind(key).Run();
}

// --- Requests, snapshots, tokens, audit -----------------------------------------------------------

const std::string_view kRequestColumns = "principal, request_id, method, body_sha256, run, note";

RequestRow ReadRequest(Columns& columns) {
  RequestRow row;
  row.principal = columns.Text();
  row.request_id = columns.Text();
  row.method = columns.Text();
  row.body_sha256 = columns.Text();
  row.run = columns.Int64();
  row.note = columns.Text();
  return row;
}

absl::Status WriteRequest(Database& database, const RequestRow& row) {
  static const std::string sql = InsertSql("request", kRequestColumns);
  return Query(database, sql).Bind(row.principal, row.request_id, row.method, row.body_sha256, row.run, row.note).Run();
}

absl::Status WriteSnapshot(Database& database, const SnapshotRow& row) {
  static const std::string sql = UpsertSql("snapshot", "id, owner, bytes, files, created_at_us", "id");
  return Query(database, sql).Bind(row.id, row.owner, row.bytes, row.files, row.created_at).Run();
}

const std::string_view kTokenColumns = "id, secret_sha256, user, role, created_at_us";

TokenRow ReadToken(Columns& columns) {
  TokenRow row;
  row.id = columns.Text();
  row.secret_sha256 = columns.Text();
  row.user = columns.Text();
  row.role = columns.Enum<Role>();
  row.created_at = columns.Time();
  return row;
}

absl::Status WriteToken(Database& database, const TokenRow& row) {
  static const std::string sql = UpsertSql("token", kTokenColumns, "id");
  return Query(database, sql).Bind(row.id, row.secret_sha256, row.user, row.role, row.created_at).Run();
}

absl::Status WriteAudit(Database& database, const AuditRow& row) {
  static const std::string sql = InsertSql("audit", "at_us, principal, method, run, detail, revision");
  return Query(database, sql).Bind(row.at, row.principal, row.method, row.run, row.detail, row.revision).Run();
}

// --- Quotas, windows ------------------------------------------------------------------------------

const std::string_view kQuotaRuleColumns = "id, user, from_us, until_us, limits, set_at_us, set_by";

core::QuotaRule ReadQuotaRule(Columns& columns) {
  core::QuotaRule rule;
  rule.id = columns.Int64();
  rule.user = columns.Text();
  rule.from = columns.OptionalTime();
  rule.until = columns.OptionalTime();
  rule.limits = JsonOf<core::QuotaLimits>(columns);
  rule.set_at = columns.Time();
  rule.set_by = columns.Text();
  return rule;
}

absl::Status WriteQuotaRule(Database& database, const core::QuotaRule& rule) {
  static const std::string sql = UpsertSql("quota_rule", kQuotaRuleColumns, "id");
  return Query(database, sql)
      .Bind(rule.id, rule.user, rule.from, rule.until, Encode(rule.limits), rule.set_at, rule.set_by)
      .Run();
}

absl::Status DeleteQuotaRule(Database& database, const int64_t& id) {
  return Query(database, "DELETE FROM quota_rule WHERE id = ?").Bind(id).Run();
}

const std::string_view kStorageUseColumns = "owner, bytes, scanned_at_us";

StorageUseRow ReadStorageUse(Columns& columns) {
  StorageUseRow row;
  row.owner = columns.Text();
  row.use.bytes = columns.Int64();
  row.use.scanned_at = columns.Time();
  return row;
}

absl::Status WriteStorageUse(Database& database, const StorageUseRow& row) {
  static const std::string sql = UpsertSql("storage_use", kStorageUseColumns, "owner");
  return Query(database, sql).Bind(row.owner, row.use.bytes, row.use.scanned_at).Run();
}

const std::string_view kWindowHoldColumns = "series, until_us, set_by";

WindowHoldRow ReadWindowHold(Columns& columns) {
  WindowHoldRow row;
  row.series = columns.Text();
  row.until = columns.Time();
  row.set_by = columns.Text();
  return row;
}

absl::Status WriteWindowHold(Database& database, const WindowHoldRow& row) {
  static const std::string sql = UpsertSql("window_hold", kWindowHoldColumns, "series");
  return Query(database, sql).Bind(row.series, row.until, row.set_by).Run();
}

// --- Nodes ----------------------------------------------------------------------------------------

const std::string_view kNodeMarkColumns = "node, card, kind, reason, set_by, set_at_us";

core::NodeMark ReadNodeMark(Columns& columns) {
  core::NodeMark mark;
  mark.part.node = columns.Text();
  mark.part.card = columns.Int32();
  mark.kind = columns.Enum<core::MarkKind>();
  mark.reason = columns.Text();
  mark.by = columns.Text();
  mark.at = columns.Time();
  return mark;
}

absl::Status WriteNodeMark(Database& database, const core::NodeMark& mark) {
  static const std::string sql = UpsertSql("node_mark", kNodeMarkColumns, "node, card");
  return Query(database, sql).Bind(mark.part.node, mark.part.card, mark.kind, mark.reason, mark.by, mark.at).Run();
}

absl::Status DeleteNodeMark(Database& database, const core::NodePart& part) {
  return Query(database, "DELETE FROM node_mark WHERE node = ? AND card = ?").Bind(part.node, part.card).Run();
}

const std::string_view kStrikeColumns = "node, at_us, run, step, attempt, owner, failure_kind";

core::Strike ReadStrike(Columns& columns) {
  core::Strike strike;
  strike.node = columns.Text();
  strike.at = columns.Time();
  strike.attempt.step.run = columns.Int64();
  strike.attempt.step.step = columns.Int32();
  strike.attempt.attempt = columns.Int32();
  strike.owner = columns.Text();
  strike.kind = columns.Enum<core::FailureKind>();
  return strike;
}

// Those that are over go with the next one of their node, as in core::NodeBook.
absl::Status WriteStrike(Database& database, const core::Strike& strike) {
  TP_RETURN_IF_ERROR(Query(database, "DELETE FROM strike WHERE node = ? AND at_us <= ?")
                         .Bind(strike.node, strike.at - core::kStrikeLife)
                         .Run());
  static const std::string sql = UpsertSql("strike", kStrikeColumns, "node, at_us, run, step, attempt");
  return Query(database, sql)
      .Bind(strike.node, strike.at, strike.attempt.step.run, strike.attempt.step.step, strike.attempt.attempt,
            strike.owner, strike.kind)
      .Run();
}

absl::Status DeleteStrikes(Database& database, const std::string& node) {
  return Query(database, "DELETE FROM strike WHERE node = ?").Bind(node).Run();
}

// --- Meta -----------------------------------------------------------------------------------------

const std::string_view kMetaColumns = "epoch, revision, next_run, next_outbox, ledger_seq, ledger_hash";

Meta ReadMeta(Columns& columns) {
  Meta meta;
  meta.epoch = columns.Int64();
  meta.revision = columns.Int64();
  meta.next_run = columns.Int64();
  meta.next_outbox = columns.Int64();
  meta.ledger_seq = columns.Int64();
  meta.ledger_hash = columns.Text();
  return meta;
}

absl::Status WriteMeta(Database& database, const Meta& meta) {
  return Query(database,
               "UPDATE meta SET epoch = ?, revision = ?, next_run = ?, next_outbox = ?, ledger_seq = ?, "
               "ledger_hash = ?")
      .Bind(meta.epoch, meta.revision, meta.next_run, meta.next_outbox, meta.ledger_seq, meta.ledger_hash)
      .Run();
}

}  // namespace tp::store
