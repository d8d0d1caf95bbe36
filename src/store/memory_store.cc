#include "store/memory_store.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "store/micros.h"
#include "store/usage.h"
#include "store/waiting.h"

namespace tp::store {
namespace {

absl::Status CheckLimit(int limit) {
  if (limit > 0) return absl::OkStatus();
  return InvalidArgument("a page of {} rows was asked for: ask for at least one", limit);
}

bool HasLabels(const core::Run& run, const std::map<std::string, std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = run.labels.find(label.first);
    return found != run.labels.end() && found->second == label.second;
  });
}

template <typename Map, typename Key>
std::optional<typename Map::mapped_type> Find(const Map& map, const Key& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

template <typename Map>
std::vector<typename Map::mapped_type> Values(const Map& map) {
  std::vector<typename Map::mapped_type> values;
  values.reserve(map.size());
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

template <typename Months>
auto NewestTwo(const Months& months) {
  return months.size() < 2 ? months.begin() : std::prev(months.end(), 2);
}

template <typename Row>
Row Rounded(Row row, absl::Time Row::*time) {
  RoundToMicros(row.*time);
  return row;
}

bool NeedsSnapshot(const core::Run& run) {
  return run.snapshot_available && !run.removed_at && !run.snapshot_id.empty();
}

}  // namespace

std::unique_ptr<MemoryStore> MemoryStore::Clone() const {
  const std::lock_guard lock(mutex_);
  return std::unique_ptr<MemoryStore>(new MemoryStore(data_));
}

// The run as it will be. The rows that `change` does not name are those of `data`.
absl::StatusOr<MemoryStore::StoredRun> MemoryStore::Changed(const Data& data, int64_t n, const RunChange& change) {
  const auto found = data.runs.find(n);
  const bool known = found != data.runs.end();
  if (!known && change.run == nullptr) return FailedPrecondition("a step of run {}, which does not exist", n);
  StoredRun run = known ? found->second : StoredRun{};
  if (change.run != nullptr) {
    run.value.run = *change.run;
    RoundToMicros(run.value.run);
  }
  if (known && change.steps.empty()) return run;

  std::vector<core::Step>& steps = run.value.steps;
  for (const auto& [index, step] : change.steps) {
    const auto at = static_cast<size_t>(std::max(index, 0));
    if (at > steps.size() || index < 0) return FailedPrecondition("run {} has no step {}", n, steps.size());
    if (at == steps.size()) steps.emplace_back();
    steps[at] = *step;
    RoundToMicros(steps[at]);
  }
  TP_ASSIGN_OR_RETURN(const RunSummary summary, Summarize(n, steps));
  if (!known || summary.word != run.summary.word) {
    run.word_changed_at = change.changed_at();
    RoundToMicros(run.word_changed_at);
  }
  run.summary = summary;
  return run;
}

absl::Status MemoryStore::CheckUnique(const Data& data, const Txn& txn) {
  std::set<RequestKey> requests;
  for (const RequestRow& row : txn.requests) {
    RequestKey key(row.principal, row.request_id);
    if (data.requests.contains(key) || !requests.insert(std::move(key)).second) {
      return FailedPrecondition("request {} of {} was answered before", row.request_id, row.principal);
    }
  }
  std::set<BillingKey> billed;
  for (const core::LedgerRow& row : txn.ledger) {
    BillingKey key(row.run, row.step, row.attempt, row.pool, row.month, row.delta);
    if (data.billed.contains(key) || !billed.insert(std::move(key)).second) {
      return FailedPrecondition("attempt {} of step {} of run {} is in the ledger already", row.attempt, row.step,
                                row.run);
    }
  }
  return absl::OkStatus();
}

// `run` as it will be, while `data` has it as it was.
void MemoryStore::NoteWordChange(Data& data, const RunChange& change, const StoredRun& run) {
  const auto known = data.runs.find(run.value.run.n);
  std::optional<core::RunWord> before;
  if (known != data.runs.end()) before = known->second.summary.word;
  const auto row = WordChangeOf(change, before, run.summary, run.value.steps);
  if (row) data.word_changes[row->revision] = Rounded(*row, &WordChangeRow::at);
}

void MemoryStore::Append(Data& data, const Txn& txn) {
  data.meta = txn.meta;
  for (const EventRow& row : txn.events) data.events.push_back(Rounded(row, &EventRow::at));
  for (const OutboxRow& row : txn.outbox_added) data.outbox[row.id] = Rounded(row, &OutboxRow::created_at);
  for (const int64_t id : txn.outbox_done) data.outbox.erase(id);
  for (const core::LedgerRow& row : txn.ledger) {
    data.ledger.push_back(row);
    data.billed.emplace(row.run, row.step, row.attempt, row.pool, row.month, row.delta);
    data.month_gpu_ms[row.month][row.owner] += row.gpu_ms;
  }
  for (const core::Correction& row : txn.corrections) RoundToMicros(data.corrections[row.target.key] = row);
  for (const std::string& key : txn.corrections_done) data.corrections.erase(key);
  for (const RequestRow& row : txn.requests) data.requests[{row.principal, row.request_id}] = row;
  for (const SnapshotRow& row : txn.snapshots) data.snapshots[row.id] = Rounded(row, &SnapshotRow::created_at);
  for (const TokenRow& row : txn.tokens) data.tokens[row.id] = Rounded(row, &TokenRow::created_at);
  for (const AuditRow& row : txn.audit) data.audit.push_back(Rounded(row, &AuditRow::at));
}

// What admins set, and what a scan found.
void MemoryStore::Set(Data& data, const Txn& txn) {
  for (const core::QuotaRule& rule : txn.quota_rules) RoundToMicros(data.quota_rules[rule.id] = rule);
  for (const int64_t id : txn.quota_rules_removed) data.quota_rules.erase(id);
  for (const StorageUseRow& row : txn.storage_use) RoundToMicros((data.storage_use[row.owner] = row).use);
  for (const WindowHoldRow& row : txn.window_holds) data.window_holds[row.series] = Rounded(row, &WindowHoldRow::until);
  for (const core::NodeMark& mark : txn.node_marks) data.node_marks[mark.part] = Rounded(mark, &core::NodeMark::at);
  for (const core::NodePart& part : txn.node_marks_removed) data.node_marks.erase(part);
  for (const core::Strike& strike : txn.strikes) AddStrike(data, strike);
  for (const std::string& node : txn.strikes_forgotten) data.strikes.erase(node);
}

void MemoryStore::AddStrike(Data& data, const core::Strike& strike) {
  std::vector<core::Strike>& strikes = data.strikes[strike.node];
  const core::Strike added = Rounded(strike, &core::Strike::at);
  std::erase_if(strikes, [&](const core::Strike& old) { return old.at + core::kStrikeLife <= added.at; });
  strikes.push_back(added);
}

absl::Status MemoryStore::Commit(const Txn& txn) {
  const std::lock_guard lock(mutex_);
  TP_RETURN_IF_ERROR(CheckTxn(txn, data_.meta));
  TP_RETURN_IF_ERROR(CheckUnique(data_, txn));
  const std::map<int64_t, RunChange> changes = ChangesByRun(txn);
  std::map<int64_t, StoredRun> changed;
  for (const auto& [n, change] : changes) {
    TP_ASSIGN_OR_RETURN(changed[n], Changed(data_, n, change));
  }
  for (const auto& [n, change] : changes) NoteWordChange(data_, change, changed.at(n));
  for (auto& [n, run] : changed) data_.runs[n] = std::move(run);
  Append(data_, txn);
  Set(data_, txn);
  return absl::OkStatus();
}

std::vector<MonthUseRow> MemoryStore::NewestMonths(const Data& data) {
  std::vector<MonthUseRow> rows;
  for (auto month = NewestTwo(data.month_gpu_ms); month != data.month_gpu_ms.end(); ++month) {
    for (const auto& [owner, gpu_ms] : month->second) rows.push_back({month->first, owner, gpu_ms});
  }
  return rows;
}

std::vector<HourUseRow> MemoryStore::HoursOfNewestMonths(const Data& data) {
  std::map<std::pair<int64_t, std::string>, int64_t> hours;  // by hour and owner
  for (const core::LedgerRow& row : data.ledger) {
    if (row.gpu_ms == 0 || row.month < NewestTwo(data.month_gpu_ms)->first) continue;
    hours[{core::EndHourUnixMs(row.end_unix_ms), row.owner}] += row.gpu_ms;
  }
  std::vector<HourUseRow> rows;
  rows.reserve(hours.size());
  for (const auto& [key, gpu_ms] : hours) rows.push_back({key.first, key.second, gpu_ms});
  return rows;
}

absl::StatusOr<Loaded> MemoryStore::Load() {
  const std::lock_guard lock(mutex_);
  Loaded loaded;
  loaded.meta = data_.meta;
  for (const auto& [n, run] : data_.runs) {
    if (!core::IsTerminal(run.summary.word)) loaded.runs.push_back(run.value);
  }
  loaded.outbox = Values(data_.outbox);
  loaded.quota_rules = Values(data_.quota_rules);
  loaded.storage_use = Values(data_.storage_use);
  loaded.window_holds = Values(data_.window_holds);
  loaded.node_marks = Values(data_.node_marks);
  for (const auto& [node, strikes] : data_.strikes) {
    loaded.strikes.insert(loaded.strikes.end(), strikes.begin(), strikes.end());
  }
  loaded.corrections = Values(data_.corrections);
  loaded.month_use = NewestMonths(data_);
  loaded.hour_use = HoursOfNewestMonths(data_);
  return loaded;
}

absl::Status MemoryStore::BeginEpoch(int64_t epoch, int64_t next_run) {
  const std::lock_guard lock(mutex_);
  TP_RETURN_IF_ERROR(CheckEpoch(epoch, next_run, data_.meta));
  data_.meta.epoch = epoch;
  data_.meta.next_run = next_run;
  return absl::OkStatus();
}

absl::StatusOr<core::RunWithSteps> MemoryStore::GetRun(int64_t n) {
  const std::lock_guard lock(mutex_);
  const auto found = data_.runs.find(n);
  if (found == data_.runs.end()) return NotFound("there is no run {}", n);
  return found->second.value;
}

absl::StatusOr<int64_t> MemoryStore::LastRun(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  for (auto run = data_.runs.rbegin(); run != data_.runs.rend(); ++run) {
    const core::Run& row = run->second.value.run;
    if (row.owner == owner && !row.removed_at) return run->first;
  }
  return NotFound("{} has no run yet", owner);
}

bool MemoryStore::Matches(const StoredRun& run, const RunFilter& filter) {
  const core::Run& row = run.value.run;
  if (row.removed_at && !filter.with_removed) return false;
  if (filter.owner && row.owner != *filter.owner) return false;
  if (filter.project && row.project != *filter.project) return false;
  const auto& words = filter.words;
  if (!words.empty() && std::find(words.begin(), words.end(), run.summary.word) == words.end()) return false;
  if (filter.changed_after && core::IsTerminal(run.summary.word) &&
      ToMicros(run.word_changed_at) <= ToMicros(*filter.changed_after)) {
    return false;
  }
  return HasLabels(row, filter.labels);
}

absl::StatusOr<RunPage> MemoryStore::ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  const std::lock_guard lock(mutex_);
  RunPage page;
  auto run = before ? data_.runs.lower_bound(*before) : data_.runs.end();
  while (run != data_.runs.begin()) {
    --run;
    if (!Matches(run->second, filter)) continue;
    if (page.runs.size() == static_cast<size_t>(limit)) {
      page.next_before = page.runs.back().run.n;
      break;
    }
    page.runs.push_back(run->second.value);
    page.summaries.push_back(run->second.summary);
  }
  return page;
}

absl::StatusOr<std::vector<QueuedStepRow>> MemoryStore::QueuedSteps() {
  const std::lock_guard lock(mutex_);
  std::vector<QueuedStepRow> rows;
  for (const auto& [n, stored] : data_.runs) {
    for (QueuedStepRow& row : WaitingStepsOf(stored.value)) rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<EventRow>> MemoryStore::Events(int64_t run, int64_t after_revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  const std::lock_guard lock(mutex_);
  std::vector<EventRow> rows;
  for (const EventRow& row : data_.events) {
    if (rows.size() == static_cast<size_t>(limit)) break;
    if (row.run == run && row.revision > after_revision) rows.push_back(row);
  }
  return rows;
}

absl::StatusOr<std::vector<EventRow>> MemoryStore::EventsAfter(int64_t revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  const std::lock_guard lock(mutex_);
  const auto first = std::upper_bound(data_.events.begin(), data_.events.end(), revision,
                                      [](int64_t wanted, const EventRow& row) { return wanted < row.revision; });
  const auto count = std::min<std::ptrdiff_t>(limit, data_.events.end() - first);
  return std::vector<EventRow>(first, first + count);
}

absl::StatusOr<std::vector<WordChange>> MemoryStore::WordChangesAfter(int64_t revision, int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  const std::lock_guard lock(mutex_);
  std::vector<WordChange> changes;
  for (auto row = data_.word_changes.upper_bound(revision); row != data_.word_changes.end(); ++row) {
    if (changes.size() == static_cast<size_t>(limit)) break;
    WordChange& change = changes.emplace_back(WordChange{row->second, data_.runs.at(row->second.run).value.run});
    change.run.labels.clear();
  }
  return changes;
}

absl::StatusOr<int64_t> MemoryStore::Revision() {
  const std::lock_guard lock(mutex_);
  return data_.meta.revision;
}

absl::StatusOr<Meta> MemoryStore::ReadMeta() {
  const std::lock_guard lock(mutex_);
  return data_.meta;
}

absl::StatusOr<std::optional<RequestRow>> MemoryStore::FindRequest(const std::string& principal,
                                                                   const std::string& request_id) {
  const std::lock_guard lock(mutex_);
  return Find(data_.requests, RequestKey(principal, request_id));
}

absl::StatusOr<std::vector<std::string>> MemoryStore::Owners() {
  const std::lock_guard lock(mutex_);
  std::set<std::string> owners;
  for (const auto& [n, stored] : data_.runs) owners.insert(stored.value.run.owner);
  return std::vector<std::string>(owners.begin(), owners.end());
}

absl::StatusOr<std::vector<std::string>> MemoryStore::NeededSnapshots() {
  const std::lock_guard lock(mutex_);
  std::set<std::string> ids;
  for (const auto& [n, stored] : data_.runs) {
    const core::Run& run = stored.value.run;
    if (NeedsSnapshot(run)) ids.insert(run.snapshot_id);
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

absl::StatusOr<std::vector<std::string>> MemoryStore::SnapshotsOf(const std::string& owner,
                                                                  absl::Time committed_after) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> ids;
  for (const auto& [n, stored] : data_.runs) {
    const core::Run& run = stored.value.run;
    if (run.owner == owner && NeedsSnapshot(run)) ids.insert(run.snapshot_id);
  }
  for (const auto& [id, row] : data_.snapshots) {
    if (row.owner == owner && row.created_at > committed_after) ids.insert(id);
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

absl::StatusOr<std::optional<TokenRow>> MemoryStore::FindToken(const std::string& id) {
  const std::lock_guard lock(mutex_);
  return Find(data_.tokens, id);
}

absl::StatusOr<std::vector<UsageRow>> MemoryStore::Usage(const UsageFilter& filter, UsageKey by) {
  const std::lock_guard lock(mutex_);
  UsageSum sum(filter, by);
  for (const core::LedgerRow& row : data_.ledger) {
    if (store::Matches(row, filter)) sum.Add(row);
  }
  return sum.Rows();
}

absl::StatusOr<std::vector<core::LedgerRow>> MemoryStore::Ledger(const UsageFilter& filter, int64_t after_seq,
                                                                 int limit) {
  TP_RETURN_IF_ERROR(CheckLimit(limit));
  const std::lock_guard lock(mutex_);
  std::vector<core::LedgerRow> rows;
  for (const core::LedgerRow& row : data_.ledger) {
    if (rows.size() == static_cast<size_t>(limit)) break;
    if (row.seq > after_seq && store::Matches(row, filter)) rows.push_back(row);
  }
  return rows;
}

absl::StatusOr<std::vector<MonthUseRow>> MemoryStore::MonthUse() {
  const std::lock_guard lock(mutex_);
  return NewestMonths(data_);
}

}  // namespace tp::store
