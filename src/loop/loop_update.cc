// Commands that change what is known of a run and none of its states: tp update, hold, release, rm.
#include <fmt/ranges.h>

#include "base/status.h"
#include "core/revision.h"
#include "loop/loop.h"
#include "loop/principal.h"

namespace tp::loop {
namespace {

absl::Status CheckVersion(const core::RunWithSteps& run, const std::string& expected) {
  if (expected.empty() || expected == core::VersionOf(run)) return absl::OkStatus();
  return Error(absl::StatusCode::kAborted, "{} was changed by somebody else meanwhile: look at it, and try again",
               run.run.id());
}

constexpr char kOutOfQuarantine[] = "out of quarantine";

}  // namespace

absl::StatusOr<Answer> Loop::Update(const Command& command, const UpdateRun& update) {
  TP_RETURN_IF_ERROR(CheckStored(update.stored));
  const auto live = runs_.find(update.stored.run.n);
  core::RunWithSteps run = live != runs_.end() ? live->second : update.stored;
  TP_RETURN_IF_ERROR(CheckMayChange(command.who, run.run));
  TP_RETURN_IF_ERROR(CheckVersion(run, update.expected_version));
  const core::Reviser by = ReviserOf(command.who, run.run);
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> changes, core::Revise(run, update.revision, by, *registry_));
  Answer answer;
  answer.run = run.run.n;
  answer.run_id = run.run.id();
  answer.note = changes.empty() ? "nothing changes" : fmt::format("{}", fmt::join(changes, "; "));
  if (live == runs_.end()) {
    if (!changes.empty()) WriteOver(run, answer.note);
  } else {
    if (!changes.empty()) ReplaceLive(std::move(run), answer.note);
    const bool releases = by.is_operator && update.revision.hold == false;
    if (releases && LiftQuarantine(live->second)) {
      answer.note = changes.empty() ? kOutOfQuarantine : fmt::format("{}; {}", answer.note, kOutOfQuarantine);
    }
  }
  Remember(command, answer);
  Audit(command, answer.run, fmt::format("updated {}: {}", answer.run_id, answer.note));
  return answer;
}

void Loop::ReplaceLive(core::RunWithSteps changed, const std::string& note) {
  core::RunWithSteps& run = runs_.at(changed.run.n);
  run = std::move(changed);
  batch_.runs.insert(run.run.n);
  batch_.changed = true;
  for (const core::Step& step : run.steps) {
    batch_.steps.insert(step.ref);
    Reindex(run, step);
  }
  Log(run.steps.front(), "updated", run.steps.front().state, run.steps.front().state, note);
}

// A run that is not in memory.
void Loop::WriteOver(const core::RunWithSteps& changed, const std::string& note) {
  batch_.txn.runs.push_back(changed.run);
  batch_.txn.steps.insert(batch_.txn.steps.end(), changed.steps.begin(), changed.steps.end());
  LogOver(changed, "updated", note);
  RememberOver(changed);
}

void Loop::LogOver(const core::RunWithSteps& run, std::string_view event, std::string note) {
  const core::Step& step = run.steps.front();
  Log(step, event, step.state, step.state, std::move(note));
  last_notes_.erase(step.ref);
}

absl::StatusOr<Answer> Loop::Remove(const Command& command, const RemoveRun& remove) {
  core::RunWithSteps run = remove.stored;
  TP_RETURN_IF_ERROR(CheckMayChange(command.who, run.run));
  if (const auto live = runs_.find(run.run.n); live != runs_.end()) {
    return FailedPrecondition("{} is {}: only runs that are over can be removed; tp stop it first", run.run.id(),
                              core::Name(core::RollUp(live->second.steps)));
  }
  TP_RETURN_IF_ERROR(CheckStored(run));
  Answer answer;
  answer.run = run.run.n;
  answer.run_id = run.run.id();
  answer.note = "was removed before";
  if (!run.run.removed_at) {
    run.run.removed_at = now_;
    answer.note = "removed; usage and audit stay";
    batch_.txn.runs.push_back(run.run);
    OweRemoval(run.run);
    DropCorrectionsOf(run.run.n);
    LogOver(run, "removed", fmt::format("by {}", command.who.user));
    RememberOver(run);
  }
  Remember(command, answer);
  Audit(command, answer.run, fmt::format("removed {}", answer.run_id));
  return answer;
}

// The storage is to this effect what an engine is to the others: it has one object a run, its directory.
void Loop::OweRemoval(const core::Run& run) {
  store::OutboxRow row;
  row.id = meta_.next_outbox++;
  row.attempt = {{run.n, 0}, 0};
  row.kind = store::OutboxKind::kRemove;
  row.backend = kStorageBackend;
  row.target.key = fmt::format("run-{}", run.n);
  row.target.attempt_dir = core::RunDirectoryOf(settings_.layout, run);
  row.created_at = now_;
  batch_.txn.outbox_added.push_back(row);
  outbox_.emplace(row.id, row);
  SendLater(row, nullptr);
}

}  // namespace tp::loop
