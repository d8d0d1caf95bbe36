#include "store/txn.h"

#include <algorithm>

#include "base/status.h"
#include "core/reason.h"
#include "store/chain.h"
#include "store/micros.h"

namespace tp::store {
namespace {

absl::Status CheckCounters(const Meta& after, const Meta& before) {
  if (after.epoch != before.epoch) {
    return FailedPrecondition("a commit of epoch {} does not fit a database of epoch {}", after.epoch, before.epoch);
  }
  if (after.next_run < before.next_run || after.next_outbox < before.next_outbox) {
    return FailedPrecondition("a commit takes run or outbox numbers back (run {} to {}, outbox {} to {})",
                              before.next_run, after.next_run, before.next_outbox, after.next_outbox);
  }
  return absl::OkStatus();
}

absl::Status CheckEvents(const Txn& txn, const Meta& before) {
  int64_t revision = before.revision;
  for (const EventRow& event : txn.events) {
    if (event.revision != ++revision) {
      return FailedPrecondition("event revision {} where {} is next", event.revision, revision);
    }
  }
  if (txn.meta.revision == revision) return absl::OkStatus();
  return FailedPrecondition("the commit's revision is {}, but its last event's is {}", txn.meta.revision, revision);
}

absl::Status CheckChain(const Txn& txn, const Meta& before) {
  int64_t seq = before.ledger_seq;
  std::string hash = before.ledger_hash;
  for (const core::LedgerRow& row : txn.ledger) {
    if (row.seq != ++seq || row.previous_hash != hash || row.hash != HashOf(row)) {
      return FailedPrecondition("ledger row {} does not continue the chain at {}", row.seq, seq);
    }
    hash = row.hash;
  }
  if (txn.meta.ledger_seq == seq && txn.meta.ledger_hash == hash) return absl::OkStatus();
  return FailedPrecondition("the commit's ledger ends at {}, but its last row is {}", txn.meta.ledger_seq, seq);
}

absl::Status CheckNumbers(const Txn& txn, const Meta& before) {
  for (const core::Run& run : txn.runs) {
    if (run.n < 1 || run.n >= txn.meta.next_run) {
      return FailedPrecondition("run {} was not allotted: the next number is {}", run.n, txn.meta.next_run);
    }
  }
  int64_t next = before.next_outbox;
  for (const OutboxRow& row : txn.outbox_added) {
    if (row.id < next || row.id >= txn.meta.next_outbox) {
      return FailedPrecondition("outbox row {} is not a new one in order ({} to {})", row.id, next,
                                txn.meta.next_outbox);
    }
    next = row.id + 1;
  }
  return absl::OkStatus();
}

absl::Status CheckQuotas(const Txn& txn) {
  for (const core::QuotaRule& rule : txn.quota_rules) {
    if (rule.id < 1) return FailedPrecondition("quota rule {} of {}: ids count from 1", rule.id, rule.user);
    if (rule.from && rule.until && ToMicros(*rule.from) >= ToMicros(*rule.until)) {
      return FailedPrecondition("quota rule {} of {} ends before it begins", rule.id, rule.user);
    }
  }
  for (const StorageUseRow& row : txn.storage_use) {
    if (row.use.bytes < 0) return FailedPrecondition("{} is said to use {} bytes", row.owner, row.use.bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTxn(const Txn& txn, const Meta& before) {
  TP_RETURN_IF_ERROR(CheckCounters(txn.meta, before));
  TP_RETURN_IF_ERROR(CheckEvents(txn, before));
  TP_RETURN_IF_ERROR(CheckChain(txn, before));
  TP_RETURN_IF_ERROR(CheckQuotas(txn));
  return CheckNumbers(txn, before);
}

absl::Status CheckEpoch(int64_t epoch, int64_t next_run, const Meta& before) {
  if (epoch > before.epoch && next_run >= before.next_run) return absl::OkStatus();
  return FailedPrecondition("epoch {} from run {} on does not follow epoch {} with run {} next", epoch, next_run,
                            before.epoch, before.next_run);
}

absl::Time RunChange::changed_at() const {
  absl::Time latest = absl::InfinitePast();
  for (const auto& [index, step] : steps) latest = std::max(latest, step->entered_at);
  return latest;
}

std::map<int64_t, RunChange> ChangesByRun(const Txn& txn) {
  std::map<int64_t, RunChange> changes;
  for (const core::Run& run : txn.runs) changes[run.n].run = &run;
  for (const core::Step& step : txn.steps) changes[step.ref.run].steps[step.ref.step] = &step;
  for (const EventRow& event : txn.events) {
    const auto found = changes.find(event.run);
    if (found == changes.end()) continue;
    found->second.last_event = &event;
    if (event.event == kIdleEvent) found->second.idle_event = &event;
  }
  return changes;
}

absl::StatusOr<RunSummary> Summarize(int64_t n, const std::vector<core::Step>& steps) {
  if (steps.empty()) return FailedPrecondition("run {} has no step", n);
  const auto count = static_cast<int32_t>(steps.size());
  RunSummary summary;
  for (int32_t i = 0; i < count; ++i) {
    const core::Step& step = steps[static_cast<size_t>(i)];
    if (step.ref != core::StepRef{n, i}) return FailedPrecondition("run {} has no step {}", n, i);
    if (const auto& after = step.spec.after; after && (after->step < 0 || after->step >= count)) {
      return FailedPrecondition("step {} of run {} waits for step {}, which is not there", i, n, after->step);
    }
    summary.retry_count += step.retry_count;
  }
  summary.word = core::RollUp(steps);
  return summary;
}

namespace {

std::optional<WordChangeRow> IdleOf(const RunChange& change, const RunSummary& after,
                                    const std::vector<core::Step>& steps) {
  const EventRow* const event = change.idle_event;
  if (event == nullptr || after.word != core::RunWord::kRunning) return std::nullopt;
  WordChangeRow row;
  row.revision = event->revision;
  row.at = event->at;
  row.run = event->run;
  row.step = steps.at(static_cast<size_t>(event->step)).spec.name;
  row.from = after.word;
  row.to = after.word;
  row.retry_count = after.retry_count;
  row.reason = event->note;
  return row;
}

}  // namespace

std::optional<WordChangeRow> WordChangeOf(const RunChange& change, std::optional<core::RunWord> before,
                                          const RunSummary& after, const std::vector<core::Step>& steps) {
  if (!core::NoticeEventOf(after.word)) return IdleOf(change, after, steps);
  if (before == after.word || change.last_event == nullptr) return std::nullopt;
  const core::Step& speaking = core::SpeakingStep(steps);
  WordChangeRow row;
  row.revision = change.last_event->revision;
  row.at = change.last_event->at;
  row.run = change.last_event->run;
  row.step = speaking.spec.name;
  row.from = before.value_or(core::RunWord::kQueued);
  row.to = after.word;
  row.retry_count = after.retry_count;
  row.reason = core::StepReason(speaking, {});
  return row;
}

}  // namespace tp::store
