// Flagged ends whose records may still appear: looked for ever more seldom, corrected once.
#include <algorithm>
#include <vector>

#include "base/status.h"
#include "loop/guarded.h"
#include "loop/loop.h"

namespace tp::loop {

// In the commit that bills the attempt.
void Loop::OweCorrection(const core::LedgerOwner& owner, const core::Attempt& attempt, const AttemptTarget& target,
                         const core::SettleMeter& settled) {
  core::Correction correction;
  correction.attempt = {owner.step, owner.attempt};
  correction.owner = owner.owner;
  correction.project = owner.project;
  correction.backend = attempt.shape.backend;
  correction.target = target;
  correction.placement = attempt.placement;
  correction.ranks = settled.ranks;
  correction.meter = settled.meter;
  correction.created_at = now_;
  batch_.txn.corrections.push_back(correction);
  batch_.changed = true;
  corrections_.insert_or_assign(target.key, std::move(correction));
  record_looks_.Set(target.key, now_ + core::NextCorrectionLook(absl::ZeroDuration()));
}

void Loop::LookWhereOwed() {
  for (const std::string& key : record_looks_.AllDue(now_)) {
    const core::Correction& correction = corrections_.at(key);
    record_looks_.Set(key, now_ + core::NextCorrectionLook(now_ - correction.created_at));
    batch_.leaving.push_back(
        [this, backend = correction.backend, target = correction.target] { sink_.Look(backend, target); });
  }
}

// What is seen of an attempt after it has been left. Like every deadline, the last one counts on a sight only: of a
// storage that does not answer nobody knows whether the records have appeared.
void Loop::TakeLate(const AttemptObserved& observed) {
  const auto found = corrections_.find(observed.key);
  if (found == corrections_.end()) return;
  core::Correction& correction = found->second;
  const bool news = core::TakeRecords(correction, observed.observation);
  if (core::IsComplete(correction)) {
    Correct(correction);
    DropCorrection(observed.key);
  } else if (!std::holds_alternative<Unknown>(observed.observation) &&
             now_ - correction.created_at >= core::kCorrectionLasts) {
    DropCorrection(observed.key);
  } else if (news) {
    batch_.txn.corrections.push_back(correction);
    batch_.changed = true;
  }
}

// The rows and the end of what is owed are one commit.
void Loop::Correct(const core::Correction& correction) {
  auto rows = Guarded([&] {
    return absl::StatusOr<std::vector<core::LedgerRow>>(core::CorrectionRows(correction, settings_.accounting_zone));
  });
  if (!rows.ok()) return Quarantine(correction.attempt.step, rows.status());
  AddToLedger(*std::move(rows));
}

void Loop::DropCorrection(const std::string& key) {
  batch_.txn.corrections_done.push_back(key);
  batch_.changed = true;
  record_looks_.Drop(key);
  corrections_.erase(key);
}

// Its directory goes, and the records with it.
void Loop::DropCorrectionsOf(int64_t run) {
  std::vector<std::string> keys;
  for (const auto& [key, correction] : corrections_) {
    if (correction.attempt.step.run == run) keys.push_back(key);
  }
  for (const std::string& key : keys) DropCorrection(key);
}

void Loop::MoveCorrections(absl::Duration by) {
  for (auto& [key, correction] : corrections_) {
    correction.created_at += by;
    correction.meter.seen_at += by;
    batch_.txn.corrections.push_back(correction);
    batch_.changed = true;
  }
  record_looks_.Move(by);
}

}  // namespace tp::loop
