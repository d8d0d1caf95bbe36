// Orphans that an admin has swept: by the ordinary effects, so that they are delivered whatever happens to tpd. What
// fails is tried again by this life of tpd; another sweep finds what is left.
#include "base/status.h"
#include "loop/loop.h"
#include "loop/principal.h"

namespace tp::loop {

// What has become live, or is owed such an effect already, is left out.
absl::StatusOr<Answer> Loop::Sweep(const Command& command, const SweepOrphans& sweep) {
  TP_RETURN_IF_ERROR(CheckAdmin(command.who, "end orphans"));
  int swept = 0;
  for (const SweepOrphans::Orphan& orphan : sweep.orphans) {
    const std::optional<core::ParsedKey> key = core::ParseAttemptKey(orphan.target.key);
    const bool ours = key && key->deployment == settings_.deployment;
    if (!ours || by_key_.contains(orphan.target.key)) continue;
    if (swept_.insert(orphan.target.key).second) OweSweep(key->attempt, orphan);
    ++swept;
  }
  Answer answer;
  answer.note = fmt::format("{} orphan{} being ended", swept, swept == 1 ? " is" : "s are");
  Remember(command, answer);
  Audit(command, 0, answer.note);
  return answer;
}

// Fenced first: what has not claimed will not. The kill closes the fence file and ends the trees.
void Loop::OweSweep(const core::AttemptRef& attempt, const SweepOrphans::Orphan& orphan) {
  for (const store::OutboxKind kind :
       {store::OutboxKind::kFence, store::OutboxKind::kSignal, store::OutboxKind::kRemove}) {
    const bool signal = kind == store::OutboxKind::kSignal;
    if (signal && !owed_signals_.emplace(orphan.target.key, StopLevel::kKill).second) continue;
    store::OutboxRow row;
    row.id = meta_.next_outbox++;
    row.attempt = attempt;
    row.kind = kind;
    row.backend = orphan.backend;
    row.target = orphan.target;
    if (signal) row.level = StopLevel::kKill;
    row.created_at = now_;
    batch_.txn.outbox_added.push_back(row);
    outbox_.emplace(row.id, row);
    SendLater(row, nullptr);
  }
  // A tree whose runner is gone takes no signal; whoever looks at it ends it.
  batch_.leaving.push_back([this, orphan] { sink_.Look(orphan.backend, orphan.target); });
  batch_.changed = true;
}

}  // namespace tp::loop
