#include "core/apply.h"

#include "base/status.h"
#include "core/fold.h"
#include "core/judge.h"
#include "core/ledger.h"

namespace tp::core {
namespace {

// A short job passes SUBMITTED, PENDING, RUNNING and its end on one observation: five rows.
constexpr int kMaxRowsPerEvent = 8;

// Takes the event's data into the step before any guard looks.
void Fold(Change& c) {
  if (const auto* observed = std::get_if<Observed>(&c.event)) {
    FoldObservation(c.step, observed->observation, c.now, c.policy);
  }
}

// Closed as soon as every rank's end record is read: what follows (verification) is never billed.
void CloseMeterWhenOver(Step& step) {
  if (!step.attempt || !step.attempt->meter || step.attempt->meter->closed_unix_us) return;
  if (AllEnded(*step.attempt)) CloseMeter(*step.attempt->meter, step.attempt->ranks, step.attempt->sight.last_alive);
}

std::optional<size_t> FindRule(const Table& table, const Change& c) {
  const EventKind kind = KindOf(c.event);
  for (size_t i = 0; i < table.size(); ++i) {
    const Rule& rule = table[i];
    if (rule.on == kind && rule.from.has(c.step.state) && rule.guard(c)) return i;
  }
  return std::nullopt;
}

absl::Status Refuse(const Step& step, EventKind kind, const std::string& why) {
  return FailedPrecondition("can't {} a job that is {}: {}", Name(kind), Name(step.state), why);
}

// Runs the row; the step's state moves with it.
Taken Take(const Table& table, size_t index, Change& c) {
  const Rule& rule = table[index];
  const JobState from = c.step.state;
  c.note.clear();
  rule.act(c);
  c.step.state = rule.to.value_or(from);
  if (c.step.state != from) c.step.entered_at = c.now;
  CloseMeterWhenOver(c.step);
  return {from, c.step.state, index, c.note};
}

}  // namespace

absl::StatusOr<Transition> Apply(const Table& table, const Step& step, const Event& event, absl::Time now,
                                 const Policy& policy) {
  Change c{step, event, now, policy, {}, {}};
  if (!step.attempt && HasAttempt(step.state)) {
    return Internal("step {} of run {} is {} without an attempt", step.ref.step, step.ref.run, Name(step.state));
  }
  Fold(c);
  CloseMeterWhenOver(c.step);
  Transition transition;
  for (int rows = 0; rows < kMaxRowsPerEvent; ++rows) {
    const auto index = FindRule(table, c);
    if (!index) {
      if (rows == 0 && IsRequest(KindOf(event))) return Refuse(step, KindOf(event), "it makes no sense there");
      break;
    }
    if (table[*index].then_what == Then::kRefuse) {
      table[*index].act(c);
      return Refuse(step, KindOf(event), c.note);
    }
    transition.taken.push_back(Take(table, *index, c));
    if (table[*index].then_what == Then::kDone) break;
  }
  transition.durable = !c.effects.empty() || c.step.state != step.state || WorthSaving(step, c.step) ||
                       (KindOf(event) != EventKind::kObserved && !(c.step == step));
  transition.next = std::move(c.step);
  transition.effects = std::move(c.effects);
  return transition;
}

std::optional<absl::Time> NextTimer(const Step& step) {
  if (!step.attempt || !step.attempt->ending) return std::nullopt;
  const Attempt& attempt = *step.attempt;
  const bool grace_waits = InGrace(*attempt.ending) && attempt.sight.unknown_since;
  return grace_waits ? std::nullopt : attempt.ending->escalate_at;
}

std::string BrokenInvariant(const Step& step) {
  if (HasAttempt(step.state) != step.attempt.has_value()) return "an attempt exists exactly while one is live";
  if (step.attempt && step.attempt->number != step.attempts) return "the live attempt is the newest";
  if (step.state == JobState::kFailed && !step.failure) return "FAILED has a failure";
  if (step.failure && step.failure->sentence.empty()) return "a failure has a sentence";
  if (step.failure && step.state != JobState::kFailed && step.state != JobState::kStopped) {
    return "a failure belongs to an ended step";
  }
  if (step.state == JobState::kPaused && !step.pause.any()) return "PAUSED has a holder";
  if (step.state == JobState::kQueued && step.pause.any()) return "what is paused does not wait to run";
  if (IsTerminal(step.state) && step.pause.any()) return "what is over is not paused";
  if (step.state == JobState::kQueued && step.stop_requested) return "a stop never leads to QUEUED";
  if (step.attempt) {
    const Attempt& attempt = *step.attempt;
    if ((step.state == JobState::kRunning) != attempt.meter.has_value()) return "the meter exists exactly in RUNNING";
    if (step.state == JobState::kRunning && !AllStarted(attempt)) return "RUNNING needs a start record of every rank";
    if (attempt.ranks.size() != EmptyRanks(attempt.placement).size()) return "one entry for each rank";
  }
  return "";
}

}  // namespace tp::core
