// Steps in the loop's hands: applying events, and the indexes that follow from a step's value.
#include "base/status.h"
#include "core/revision.h"
#include "loop/guarded.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

// More than can end between a caller's look at the store and its command.
constexpr size_t kRememberedRuns = 100'000;

std::string Likeness(const core::RunWithSteps& run) {
  std::string likeness;
  for (const core::Step& step : run.steps) {
    likeness += fmt::format("{}:{}:{};", core::Name(step.state), step.attempts, step.retry_count);
  }
  return likeness + core::VersionOf(run);
}

}  // namespace

core::Step* Loop::FindStep(core::StepRef ref) {
  const auto run = runs_.find(ref.run);
  if (run == runs_.end() || ref.step < 0 || static_cast<size_t>(ref.step) >= run->second.steps.size()) return nullptr;
  return &run->second.steps[static_cast<size_t>(ref.step)];
}

absl::Status Loop::ApplyTo(core::StepRef ref, const core::Event& event, std::string* note) {
  core::Step* step = FindStep(ref);
  if (!step) return absl::OkStatus();  // late
  TP_ASSIGN_OR_RETURN(core::Transition transition,
                      Guarded([&] { return core::Apply(*settings_.table, *step, event, now_, settings_.policy); }));
  CopyNote(transition.taken, note);
  if (std::string broken = core::BrokenInvariant(transition.next); !broken.empty()) {
    return Internal("step {} of run {} would break a rule of its state ({})", ref.step, ref.run, broken);
  }
  Replace(runs_.at(ref.run), *step, std::move(transition), event);
  return absl::OkStatus();
}

// What the last row that says something says.
void Loop::CopyNote(const std::vector<core::Taken>& taken, std::string* note) {
  if (!note) return;
  for (const core::Taken& row : taken) {
    if (!row.note.empty()) *note = row.note;
  }
}

void Loop::Replace(core::RunWithSteps& run, core::Step& step, core::Transition transition, const core::Event& event) {
  const core::Step before = std::exchange(step, std::move(transition.next));
  if (transition.durable) {
    batch_.changed = true;
    batch_.steps.insert(step.ref);
    LogTaken(step, event, transition.taken);
  }
  const core::Attempt* attempt = step.attempt ? &*step.attempt : before.attempt ? &*before.attempt : nullptr;
  for (const core::Effect& effect : transition.effects) Enqueue(run, step, *attempt, effect);
  if (before.attempt && !step.attempt) {
    by_key_.erase(before.attempt->key);
    AddStrike(run, step, *before.attempt);
    batch_.leaving.push_back([this, key = before.attempt->key] { sink_.Untrack(key); });
  }
  FollowCards(before, step, event);
  Reindex(run, step);
  if (before.state != step.state) FollowDependents(run, step);
  const bool ended = core::IsTerminal(step.state) && !core::IsTerminal(before.state);
  if (core::IsTerminal(step.state) != core::IsTerminal(before.state)) turned_runs_.insert(run.run.n);
  const bool waits_again = before.attempt && !step.attempt;  // what it waits for may have changed by a retry
  if (ended || waits_again) AfterStepEnded(run);
}

// A row that changes no state and says nothing, or nothing new, leaves no trace in the log: what is tried
// again every few seconds for a day fills it otherwise.
void Loop::LogTaken(const core::Step& step, const core::Event& event, const std::vector<core::Taken>& taken) {
  for (const core::Taken& row : taken) {
    const auto last = last_notes_.find(step.ref);
    const bool silent = row.note.empty() || (last != last_notes_.end() && row.note == last->second);
    if (row.from == row.to && silent) continue;
    Log(step, core::Name(core::KindOf(event)), row.from, row.to, row.note);
  }
}

void Loop::Log(const core::Step& step, std::string_view event, core::JobState from, core::JobState to,
               std::string note) {
  if (note.empty()) {
    last_notes_.erase(step.ref);
  } else {
    last_notes_[step.ref] = note;
  }
  store::EventRow row;
  row.revision = ++meta_.revision;
  row.at = now_;
  row.run = step.ref.run;
  row.step = step.ref.step;
  row.attempt = step.attempts;
  row.event = event;
  row.from = from;
  row.to = to;
  row.note = std::move(note);
  batch_.txn.events.push_back(std::move(row));
  batch_.changed = true;
}

void Loop::Reindex(const core::RunWithSteps& run, const core::Step& step) {
  if (const auto at = core::NextTimer(step)) {
    timers_.Set(step.ref, *at);
  } else {
    timers_.Drop(step.ref);
  }
  if (step.attempt) by_key_[step.attempt->key] = step.ref;
  if (core::IsTerminal(step.state)) {
    checkpoints_.erase(step.ref);
    quarantined_.erase(step.ref);
  }
  if (!step.attempt) idle_.erase(step.ref);
  planner_.Follow(run, step, now_);
  WatchWindow(run, step);
}

// Terminal runs leave memory.
void Loop::Forget(const core::RunWithSteps& run) {
  const int64_t n = run.run.n;
  for (const core::Step& step : run.steps) {
    window_timers_.Drop(step.ref);
    last_notes_.erase(step.ref);
    checkpoints_.erase(step.ref);
    quarantined_.erase(step.ref);
  }
  ForgetDependencies(run);
  RememberOver(run);
  runs_.erase(n);
}

void Loop::RememberOver(const core::RunWithSteps& run) {
  if (over_.insert_or_assign(run.run.n, Likeness(run)).second) over_order_.push_back(run.run.n);
  if (over_order_.size() <= kRememberedRuns) return;
  over_.erase(over_order_.front());
  over_order_.pop_front();
}

// What a caller read of a run that is over must be what it was when it left memory; the commit that
// says so may still be under way.
absl::Status Loop::CheckStored(const core::RunWithSteps& stored) const {
  if (runs_.contains(stored.run.n)) return absl::OkStatus();
  const auto over = over_.find(stored.run.n);
  const bool current = over == over_.end() || over->second == Likeness(stored);
  if (current && core::IsTerminal(core::RollUp(stored.steps))) return absl::OkStatus();
  return Unavailable("run {} has just changed: try again", stored.run.id());
}

}  // namespace tp::loop
