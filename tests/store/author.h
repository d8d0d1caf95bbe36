// Writes transactions as the loop would: keeps the counters, revisions and the ledger's chain.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/chain.h"
#include "store/rows.h"

namespace tp::store {

// Test time: seconds after a fixed moment.
inline absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'767'225'600 + seconds); }  // 2026-01-01

class Author {
 public:
  Author() = default;
  explicit Author(Meta meta) : meta_(std::move(meta)) {}

  const Meta& meta() const { return meta_; }

  // Everything added since the last call, as one transaction.
  Txn Take() {
    pending_.meta = meta_;
    return std::exchange(pending_, Txn{});
  }

  // A new run with `steps` queued steps, each after the one before.
  core::Run NewRun(const std::string& owner, int steps = 1, absl::Time at = At(0)) {
    core::Run run;
    run.n = meta_.next_run++;
    run.slug = "train";
    run.owner = owner;
    run.project = owner + "-project";
    run.snapshot_id = "snapshot";
    run.created_at = at;
    pending_.runs.push_back(run);
    for (int i = 0; i < steps; ++i) Put(QueuedStep({run.n, i}, at));
    return run;
  }

  static core::Step QueuedStep(core::StepRef ref, absl::Time at = At(0)) {
    core::Step step;
    step.ref = ref;
    step.spec.argv = {"python3", "train.py"};
    if (ref.step > 0) step.spec.after = core::After{ref.step - 1, core::AfterWhen::kSuccess};
    step.created_at = at;
    step.entered_at = at;
    return step;
  }

  void Put(core::Step step) { pending_.steps.push_back(std::move(step)); }
  void Put(core::Run run) { pending_.runs.push_back(std::move(run)); }

  core::Step Enter(core::Step step, core::JobState state, absl::Time at) {
    AddEvent(step.ref, step.state, state, at);
    step.state = state;
    step.entered_at = at;
    Put(step);
    return step;
  }

  void AddEvent(core::StepRef ref, core::JobState from, core::JobState to, absl::Time at = At(0)) {
    EventRow row;
    row.revision = ++meta_.revision;
    row.at = at;
    row.run = ref.run;
    row.step = ref.step;
    row.attempt = 1;
    row.event = "observed";
    row.from = from;
    row.to = to;
    row.note = "note " + std::to_string(row.revision);
    pending_.events.push_back(std::move(row));
  }

  OutboxRow Owe(core::AttemptRef attempt, OutboxKind kind) {
    OutboxRow row;
    row.id = meta_.next_outbox++;
    row.attempt = attempt;
    row.kind = kind;
    row.level = StopLevel::kKill;
    row.backend = "local";
    row.target = {"tp-lab-e1-1-s0-a1", "nonce", "/runs/1", {2, 3}};
    row.created_at = At(3);
    pending_.outbox_added.push_back(row);
    return row;
  }

  void Paid(int64_t outbox_id) { pending_.outbox_done.push_back(outbox_id); }

  core::LedgerRow Bill(core::LedgerRow row) {
    row.gpu_ms = (row.end_unix_ms - row.start_unix_ms) * row.cards;
    ChainRow(row, meta_);
    pending_.ledger.push_back(row);
    return row;
  }

  core::LedgerRow Bill(int64_t run, const std::string& owner, absl::Time start, absl::Time end, int64_t cards) {
    core::LedgerRow row;
    row.run = run;
    row.attempt = 1;
    row.series = "h200";
    row.profile = "h200-big";
    row.owner = owner;
    row.project = owner + "-project";
    row.month = absl::FormatTime("%Y-%m", start, absl::UTCTimeZone());
    row.cards = cards;
    row.start_unix_ms = absl::ToUnixMillis(start);
    row.end_unix_ms = absl::ToUnixMillis(end);
    row.evidence = "end record of pool 0 rank 0";
    return Bill(std::move(row));
  }

  void Answer(RequestRow row) { pending_.requests.push_back(std::move(row)); }
  void Keep(SnapshotRow row) { pending_.snapshots.push_back(std::move(row)); }
  void Grant(TokenRow row) { pending_.tokens.push_back(std::move(row)); }
  void Note(AuditRow row) { pending_.audit.push_back(std::move(row)); }
  void Limit(core::QuotaRule rule) { pending_.quota_rules.push_back(std::move(rule)); }
  void Unlimit(int64_t id) { pending_.quota_rules_removed.push_back(id); }
  void Measure(StorageUseRow row) { pending_.storage_use.push_back(std::move(row)); }
  void Await(core::Correction correction) { pending_.corrections.push_back(std::move(correction)); }
  void Awaited(const std::string& key) { pending_.corrections_done.push_back(key); }
  void HoldOpen(WindowHoldRow row) { pending_.window_holds.push_back(std::move(row)); }
  void Mark(core::NodeMark mark) { pending_.node_marks.push_back(std::move(mark)); }
  void Clear(core::NodePart part) { pending_.node_marks_removed.push_back(std::move(part)); }
  void Strike(core::Strike strike) { pending_.strikes.push_back(std::move(strike)); }
  void ForgetStrikes(const std::string& node) { pending_.strikes_forgotten.push_back(node); }

 private:
  Meta meta_;
  Txn pending_;
};

}  // namespace tp::store
