// Effects: outbox rows with the commit, sent after it, deleted with the commit of their answer.
#include <algorithm>

#include "base/overloaded.h"
#include "base/strings.h"
#include "loop/guarded.h"
#include "loop/loop.h"
#include "store/chain.h"

namespace tp::loop {
namespace {

constexpr absl::Duration kFirstResend = absl::Seconds(1);
constexpr absl::Duration kLastResend = absl::Minutes(1);
constexpr int kSweepTries = 20;

absl::Duration ResendDelay(int failures) {
  absl::Duration delay = kFirstResend;
  for (int i = 1; i < failures && delay < kLastResend; ++i) delay *= 2;
  return std::min(delay, kLastResend);
}

}  // namespace

AttemptTarget Loop::TargetOf(const core::RunWithSteps& run, const core::Step& step,
                             const core::Attempt& attempt) const {
  AttemptTarget target;
  target.key = attempt.key;
  target.nonce = attempt.nonce;
  target.attempt_dir = core::PathsOf(settings_.layout, run.run, step, attempt.number).attempt_dir;
  for (const PoolPlacement& pool : attempt.placement) {
    target.ranks_per_pool.push_back(static_cast<int>(pool.ranks.size()));
    for (const RankPlacement& rank : pool.ranks)
      target.hosts.push_back({rank.node, rank.address, nodes_.IsDead(rank.node)});
  }
  return target;
}

void Loop::Enqueue(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt,
                   const core::Effect& effect) {
  store::OutboxRow row;
  bool outbox = true;
  std::visit(Overloaded{
                 [&](const core::LaunchAttempt&) { row.kind = store::OutboxKind::kLaunch; },
                 [&](const core::FenceAttempt&) { row.kind = store::OutboxKind::kFence; },
                 [&](const core::SignalAttempt& signal) {
                   row.kind = store::OutboxKind::kSignal;
                   row.level = signal.level;
                 },
                 [&](const core::RemoveAttempt&) { row.kind = store::OutboxKind::kRemove; },
                 [&](const core::SettleMeter& settle) {
                   Settle(run, step, attempt, settle);
                   outbox = false;
                 },
             },
             effect);
  if (!outbox) return;
  // One that is still to be delivered is sent again anyway: to a host that is away for a day no second
  // one is owed.
  if (row.kind == store::OutboxKind::kSignal && !owed_signals_.emplace(attempt.key, row.level).second) return;
  row.id = meta_.next_outbox++;
  row.attempt = {step.ref, attempt.number};
  row.backend = attempt.shape.backend;
  row.target = TargetOf(run, step, attempt);
  row.created_at = now_;
  batch_.txn.outbox_added.push_back(row);
  outbox_.emplace(row.id, row);
  SendLater(row, &run);
}

void Loop::Settle(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt,
                  const core::SettleMeter& settled) {
  const core::LedgerOwner owner{step.ref, attempt.number, run.run.owner, run.run.project};
  AddToLedger(core::LedgerRows(owner, settled.meter, attempt.placement, settings_.accounting_zone));
  if (!core::AwaitsRecords(settled.meter, settled.ranks)) return;
  OweCorrection(owner, attempt, TargetOf(run, step, attempt), settled);
}

void Loop::AddToLedger(std::vector<core::LedgerRow> rows) {
  for (core::LedgerRow& row : rows) {
    store::ChainRow(row, meta_);
    planner_.AddSettled(row.month, row.owner, row.gpu_ms);
    planner_.AddUse(row.owner, row.end_unix_ms, row.gpu_ms);
    batch_.txn.ledger.push_back(std::move(row));
    batch_.changed = true;
  }
}

// Leaves with the commit of this turn. A launch is rendered now, from the values of this turn.
void Loop::SendLater(const store::OutboxRow& row, const core::RunWithSteps* run) {
  if (row.kind != store::OutboxKind::kLaunch) {
    batch_.leaving.push_back([this, row] { Send(row); });
    return;
  }
  const core::Step& step = run->steps[static_cast<size_t>(row.attempt.step.step)];
  absl::StatusOr<LaunchSpec> spec = Guarded([&] { return core::PlanLaunch(settings_.layout, run->run, step); });
  ++counters_.launches;
  if (!spec.ok()) {
    batch_.leaving.push_back([this, row] { sink_.Track(row.backend, row.target); });
    Post(EffectAnswered{
        row.id, LaunchResult{LaunchRejected{LaunchRejected::Kind::kEngine, std::string(Message(spec.status()))}}});
    return;
  }
  batch_.leaving.push_back([this, row, spec = *std::move(spec)] {
    sink_.Track(row.backend, row.target);
    sink_.Launch(row.id, row.backend, spec, row.target);
  });
}

void Loop::Send(const store::OutboxRow& row) {
  AttemptTarget target = row.target;
  for (RankHost& host : target.hosts) host.declared_dead = nodes_.IsDead(host.node);  // as of now
  switch (row.kind) {
    case store::OutboxKind::kLaunch:
      return;  // only SendLater launches, at most once
    case store::OutboxKind::kFence:
      sink_.Fence(row.id, row.backend, target);
      return;
    case store::OutboxKind::kSignal:
      sink_.Signal(row.id, row.backend, target, row.level);
      return;
    case store::OutboxKind::kRemove:
      sink_.Remove(row.id, row.backend, target);
      return;
  }
}

bool Loop::IsOwedAnything(const std::string& key) const {
  return std::any_of(outbox_.begin(), outbox_.end(), [&key](const auto& row) { return row.second.target.key == key; });
}

void Loop::Done(int64_t outbox_id) {
  if (const auto row = outbox_.find(outbox_id); row != outbox_.end()) {
    const bool signal = row->second.kind == store::OutboxKind::kSignal;
    if (signal) owed_signals_.erase({row->second.target.key, row->second.level});
    const std::string key = row->second.target.key;
    outbox_.erase(row);
    if (swept_.contains(key) && !IsOwedAnything(key)) swept_.erase(key);
  }
  outbox_failures_.erase(outbox_id);
  unheard_.erase(outbox_id);
  batch_.txn.outbox_done.push_back(outbox_id);
  batch_.changed = true;
}

void Loop::TakeAnswer(const EffectAnswered& answered) {
  const auto found = outbox_.find(answered.outbox_id);
  if (found == outbox_.end()) return;  // answered before
  const store::OutboxRow row = found->second;
  const auto live = by_key_.find(row.target.key);
  const auto apply = [&](const core::Event& event) {
    if (live == by_key_.end() || Deliver(live->second, event)) {
      Done(row.id);
    } else {
      unheard_.insert(row.id);
    }
  };
  const auto again = [&] { outbox_retries_.emplace(now_ + ResendDelay(++outbox_failures_[row.id]), row.id); };
  // Nobody else asks again for an orphan, which may still be there; for ever it is not.
  const bool sweeps = swept_.contains(row.target.key) && outbox_failures_[row.id] < kSweepTries;
  std::visit(Overloaded{
                 [&](const LaunchResult& result) { apply(core::LaunchAnswered{result}); },
                 [&](const FenceResult& result) {
                   if (sweeps && std::holds_alternative<FenceFailed>(result)) return again();
                   apply(core::FenceAnswered{result});
                 },
                 [&](const absl::Status& status) {
                   const bool pointless = row.kind == store::OutboxKind::kSignal && live == by_key_.end() && !sweeps;
                   if (status.ok() || pointless) return Done(row.id);
                   again();
                 },
             },
             answered.result);
}

}  // namespace tp::loop
