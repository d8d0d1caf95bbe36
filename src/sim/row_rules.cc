#include "sim/row_rules.h"

#include <algorithm>

#include "base/strings.h"
#include "core/card_health.h"
#include "sim/units.h"

namespace tp::sim {
namespace {

using core::JobState;

bool Failed(const RankObservation& rank) { return rank.ended && !rank.ended->signalled() && !rank.ended->clean(); }

// Under a pause only what a rank did by itself counts: every other end is PAUSED.
bool NamesAnEnd(const core::Step& step) {
  const core::Attempt& attempt = *step.attempt;
  if (!attempt.owned()) return false;
  // A pause that was lifted while it is carried out is still carried out.
  const bool pausing = step.pause.any() || (attempt.ending && attempt.ending->cause == core::EndCause::kPause);
  return std::any_of(attempt.ranks.begin(), attempt.ranks.end(), [&](const RankObservation& rank) {
    return Failed(rank) || (rank.ended && rank.ended->signalled() && !pausing);
  });
}

bool SomeLeft(const core::Attempt& attempt) {
  return std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                     [](const RankObservation& rank) { return !rank.ended && rank.tree != Tree::kGone; });
}

core::SignalSent SentTo(const core::Step& step) {
  return step.attempt && step.attempt->ending ? step.attempt->ending->sent : core::SignalSent::kNone;
}

// Without records nobody can tell whether tpd's own signal came before the exit 0.
bool SignalledForAnEnd(const core::Step& step) {
  return SentTo(step) != core::SignalSent::kNone && step.attempt->ending->cause != core::EndCause::kFinished;
}

}  // namespace

RowRules::RowRules(const core::Table& table, const core::Policy& policy, const Timeline& timeline, Journal& journal,
                   const World& world)
    : policy_(policy), timeline_(timeline), journal_(journal), world_(world), coverage_(table) {}

// --- Rows -----------------------------------------------------------------------------------------

void RowRules::Took(const TakenRow& row) {
  coverage_.Add(row.index, row.from);
  if (row.rule.then_what == core::Then::kRefuse) return;
  const core::Step& after = row.change.step;
  if (row.from != row.to || row.rule.on != core::EventKind::kObserved) {
    journal_.Note("row {} {}.{} {} -> {} ({}: {})", row.index, after.ref.run, after.ref.step, core::Name(row.from),
                  core::Name(row.to), core::Name(row.rule.on), row.rule.when);
  }
  if (core::IsTerminal(row.from) && row.to != row.from && row.rule.on != core::EventKind::kRetry) {
    journal_.Break("{} is overwritten with {}", core::Name(row.from), core::Name(row.to));
  }
  CheckUnknown(row);
  CheckCounters(row);
  CheckHolders(row);
  if (row.before.attempt) Read(row);
  if (row.before.attempt && !after.attempt) CheckLeft(row);
  if (after.attempt && row.rule.then_what == core::Then::kDone) CheckLive(row);
}

void RowRules::ForgetReadings(const std::map<std::string, const core::Step*>& kept) {
  std::map<std::string, Reading> readings;
  for (const auto& [key, step] : kept) {
    Reading reading = readings_[key];
    reading.seen_at.reset();
    reading.watched_term = absl::ZeroDuration();  // a restart gives the grace anew
    if (SentTo(*step) == core::SignalSent::kNone) {
      const absl::Duration watched = reading.watched;
      reading = {};
      reading.watched = watched;
    }
    reading.card_fault = !step->attempt->sight.card_faults.empty();
    reading.look_us.reset();  // the wait may be over by the time that it starts
    readings[key] = reading;
  }
  readings_ = std::move(readings);
}

void RowRules::CheckLive(const TakenRow& row) {
  const core::Step& step = row.change.step;
  const core::Attempt& attempt = *step.attempt;
  if (!attempt.ending && (step.stop_requested || step.pause.any())) {
    journal_.Break("{} is to end and goes on", attempt.key);
  }
  const bool failed = attempt.owned() && std::any_of(attempt.ranks.begin(), attempt.ranks.end(), Failed);
  const bool ending = attempt.ending && (attempt.ending->sent >= core::SignalSent::kTerm ||
                                         attempt.ending->cause == core::EndCause::kPause);
  if (failed && SomeLeft(attempt) && !ending) journal_.Break("{}: one rank failed and the others go on", attempt.key);
}

void RowRules::CheckUnknown(const TakenRow& row) {
  const auto* observed = std::get_if<core::Observed>(&row.change.event);
  if (observed == nullptr || !std::holds_alternative<Unknown>(observed->observation)) return;
  if (row.from != row.to || !row.change.effects.empty() || !(row.before == row.change.step)) {
    journal_.Break("not seeing it made something of {}", row.before.attempt->key);
  }
}

void RowRules::CheckCounters(const TakenRow& row) {
  const core::Step& before = row.before;
  const core::Step& after = row.change.step;
  const int32_t retries = after.retry_count - before.retry_count;
  const bool by_hand = row.rule.on == core::EventKind::kRetry;
  const bool by_itself = before.attempt && !after.attempt && before.ever_ran &&
                         (row.to == JobState::kQueued || row.to == JobState::kPaused);
  if (retries != 0 && !(retries == 1 && (by_hand || by_itself))) {
    journal_.Break("retry_count of run {} rises by {} on {}", after.ref.run, retries, core::Name(row.rule.on));
  }
  if (by_hand && row.to == JobState::kQueued && row.from != row.to && retries != 1) {
    journal_.Break("a retry of run {} is not counted", after.ref.run);
  }
  const int32_t attempts = after.attempts - before.attempts;
  if (attempts != (row.rule.on == core::EventKind::kAdmitted ? 1 : 0)) {
    journal_.Break("the attempts of run {} change by {} on {}", after.ref.run, attempts, core::Name(row.rule.on));
  }
}

// Each holder lifts only its own, an owner the window's as well, an admin all.
void RowRules::CheckHolders(const TakenRow& row) {
  const core::PauseHolders& before = row.before.pause;
  const core::PauseHolders& after = row.change.step.pause;
  if (core::IsTerminal(row.to) || row.rule.on == core::EventKind::kRetry) return;
  if (const auto* pause = std::get_if<core::PauseRequested>(&row.change.event)) {
    if ((!before.owner && after.owner && pause->by != core::Holder::kOwner) ||
        (!before.admin && after.admin && pause->by != core::Holder::kAdmin)) {
      journal_.Break("run {} is held by somebody who did not ask for it", row.before.ref.run);
    }
  }
  const auto* resume = std::get_if<core::ResumeRequested>(&row.change.event);
  const bool owner_may = resume != nullptr && resume->by != core::Holder::kWindow;
  const bool admin_may = resume != nullptr && resume->by == core::Holder::kAdmin;
  if ((before.admin && !after.admin && !admin_may) || (before.owner && !after.owner && !owner_may) ||
      (before.window && !after.window && resume == nullptr)) {
    journal_.Break("run {} is let go by somebody who does not hold it", row.before.ref.run);
  }
}

void RowRules::Read(const TakenRow& row) {
  const core::Attempt& attempt = *row.before.attempt;
  Reading& reading = readings_[attempt.key];
  const auto* observed = std::get_if<core::Observed>(&row.change.event);
  if (observed != nullptr) {
    const bool seen = !std::holds_alternative<Unknown>(observed->observation);
    if (seen && reading.seen_at && reading.granted) reading.watched += timeline_.now() - *reading.seen_at;
    if (seen && reading.seen_at && SentTo(row.before) == core::SignalSent::kTerm) {
      reading.watched_term += timeline_.now() - *reading.seen_at;
      const bool patient = reading.watched_term <= 2 * policy_.stop_grace + absl::Minutes(1);
      if (!patient && SomeLeft(attempt)) journal_.Break("{}: no KILL follows TERM", attempt.key);
    }
    reading.seen_at = seen ? std::optional(timeline_.now()) : std::nullopt;
    reading.granted = attempt.granted_at.has_value();
    if (SentTo(row.before) == core::SignalSent::kNone && NamesAnEnd(row.before)) reading.evidence = true;
  }
  ReadCards(row, reading);
  if (row.change.step.attempt) {
    ReadSignals(row, reading);
    CheckDeadline(row, reading);
  }
}

void RowRules::ReadSignals(const TakenRow& row, Reading& reading) {
  const core::SignalSent before = SentTo(row.before);
  const core::SignalSent after = SentTo(row.change.step);
  if (before == after) return;
  const core::Step& step = row.change.step;
  const absl::Time now = timeline_.now();
  if (before == core::SignalSent::kNone) reading.signalled_for = step.attempt->ending->cause;
  switch (after) {
    case core::SignalSent::kNone:
      journal_.Break("{}: a signal that was sent is forgotten", step.attempt->key);
      break;
    case core::SignalSent::kWarn: {
      const auto* pause = std::get_if<core::PauseRequested>(&row.change.event);
      reading.warned_at = now;
      reading.grace = pause != nullptr ? pause->grace : policy_.pause_grace;
      break;
    }
    case core::SignalSent::kTerm:
      if (reading.warned_at && !step.stop_requested && now < *reading.warned_at + reading.grace) {
        journal_.Break("{}: TERM {} after the warning", step.attempt->key,
                       ToStd(absl::FormatDuration(now - *reading.warned_at)));
      }
      reading.termed_at = now;
      break;
    case core::SignalSent::kKill:
      if (reading.termed_at && now < *reading.termed_at + policy_.stop_grace) {
        journal_.Break("{}: KILL {} after TERM", step.attempt->key,
                       ToStd(absl::FormatDuration(now - *reading.termed_at)));
      }
      if (before == core::SignalSent::kWarn) journal_.Break("{}: KILL without TERM", step.attempt->key);
      break;
  }
}

// Time in which nothing was seen counts for no deadline.
void RowRules::CheckDeadline(const TakenRow& row, const Reading& reading) {
  const auto& ending = row.change.step.attempt->ending;
  if (row.before.attempt->ending || !ending || ending->cause != core::EndCause::kStartTimeout) return;
  if (reading.watched < row.before.spec.start_timeout.value_or(policy_.start_timeout)) {
    journal_.Break("{}: its start timeout is over after {} of watching", row.before.attempt->key,
                   ToStd(absl::FormatDuration(reading.watched)));
  }
}

// --- Leaving an attempt ---------------------------------------------------------------------------

void RowRules::CheckLeft(const TakenRow& row) {
  const std::string& key = row.before.attempt->key;
  const AttemptTruth* truth = world_.Find(key);
  static const AttemptTruth kNothing;
  if (truth == nullptr) truth = &kNothing;
  CheckTruthOfEnd(row, *truth);
  CheckOutcome(row);
  CheckMeterSettled(row, *truth);
  if (row.to == JobState::kFailed) CheckFailure(row, *truth);
  CheckCardsNamed(row, *truth);
  readings_.erase(key);
}

void RowRules::CheckTruthOfEnd(const TakenRow& row, const AttemptTruth& truth) {
  const std::string& key = row.before.attempt->key;
  if (truth.AnyProcess()) journal_.Break("{} is left for {} while its processes run", key, core::Name(row.to));
  if (truth.CanStart()) journal_.Break("{} is left for {} while it can still start", key, core::Name(row.to));
  if (row.to == JobState::kSucceeded && !truth.Clean()) journal_.Break("{} succeeded, it is said", key);
  // Without records only an engine that shows the object, or did, can tell.
  const bool told = world_.Listed(truth) || row.before.attempt->engine_end == EngineEnd::kExitedZero;
  const bool engine_tells = told && !SignalledForAnEnd(row.before);
  if (row.to != JobState::kSucceeded && truth.Clean() && (truth.AllRecorded() || engine_tells)) {
    journal_.Break("{} is left for {} although every rank exited 0", key, core::Name(row.to));
  }
}

void RowRules::ReadCards(const TakenRow& row, Reading& reading) {
  if (const auto* looked = std::get_if<core::CardsLooked>(&row.change.event)) {
    reading.card_fault = reading.card_fault || !looked->faults.empty();
  }
  if (const auto* mended = std::get_if<core::CardPutBack>(&row.change.event)) {
    const core::Attempt& after = *row.change.step.attempt;
    const bool began = std::any_of(after.ranks.begin(), after.ranks.end(),
                                   [](const RankObservation& rank) { return rank.started.has_value(); });
    if (began) journal_.Break("{} forgets what broke under it", after.key);
    if (!began && core::HasCardFault(after, {.node = mended->node, .card = mended->card, .why = {}})) {
      journal_.Break("{} has not begun and blames a card that was mended", after.key);
    }
    reading.card_fault = !after.sight.card_faults.empty();
  }
  const auto* observed = std::get_if<core::Observed>(&row.change.event);
  const bool waits = observed != nullptr && observed->cards_watched && row.rule.when == "the evidence names an end" &&
                     row.change.step.attempt->ending->cause == core::EndCause::kRankFailed;
  if (!waits) return;
  reading.look_us = timeline_.now_us();
  reading.wall_ahead_at_look = timeline_.wall() - timeline_.now();
}

// A look that was to come, by a clock that nobody has set since, before the card was seen to.
bool RowRules::LookWasDue(const Reading& reading, const AttemptTruth& truth) const {
  if (!reading.look_us || world_.looks_excused_us() >= *reading.look_us || truth.objects.empty()) return false;
  if (timeline_.wall() - timeline_.now() != reading.wall_ahead_at_look) return false;
  const std::vector<CardTruth> faults = world_.FaultsOf(truth);
  return std::any_of(faults.begin(), faults.end(), [&](const CardTruth& fault) {
    return fault.broke_us > truth.objects.front().created_us && fault.broke_us < *reading.look_us && !fault.mended_us;
  });
}

// A failure of a job's own, with a broken card among its own, is the card's; and only then.
void RowRules::CheckCardsNamed(const TakenRow& row, const AttemptTruth& truth) {
  const auto& failure = row.change.step.past.back().failure;
  if (!failure) return;
  const std::string& key = row.before.attempt->key;
  if (failure->kind == core::FailureKind::kGpuLost && world_.FaultsOf(truth).empty()) {
    journal_.Break("{} lost a card, it is said, and none of its own was broken", key);
  }
  const auto& ranks = row.before.attempt->ranks;
  const bool began = std::none_of(ranks.begin(), ranks.end(), [](const RankObservation& rank) {
    return rank.ended && rank.ended->exit == ExitKind::kNotStarted;
  });
  if (failure->kind != core::FailureKind::kUserExit || !began) return;
  const Reading& reading = readings_[key];
  if (reading.card_fault) journal_.Break("{} failed by a broken card and is named {}", key, failure->sentence);
  if (LookWasDue(reading, truth)) journal_.Break("{} failed on a broken card, and nobody looked", key);
}

void RowRules::CheckOutcome(const TakenRow& row) {
  const core::Step& before = row.before;
  const Reading& reading = readings_[before.attempt->key];
  const bool counted = row.change.step.retry_count > before.retry_count;
  if (row.to == JobState::kSucceeded) return;
  if (before.stop_requested) {
    if (row.to != JobState::kStopped)
      journal_.Break("{} was stopped and is {}", before.attempt->key, core::Name(row.to));
    return;
  }
  if (counted && !RetryIsDue(before, row.change.step.past.back().failure->kind)) {
    journal_.Break("{} is retried beyond its budget", before.attempt->key);
  }
  if (row.to == JobState::kStopped) journal_.Break("nobody stopped {}", before.attempt->key);
  if (reading.signalled_for == core::EndCause::kPause) {
    const bool ok = (row.to == JobState::kPaused || row.to == JobState::kQueued) && !counted;
    if (!ok) journal_.Break("{} was paused and is {}", before.attempt->key, core::Name(row.to));
    return;
  }
  if (reading.evidence && row.to != JobState::kFailed && !counted) {
    journal_.Break("{} had failed and is {}", before.attempt->key, core::Name(row.to));
  }
}

bool RowRules::RetryIsDue(const core::Step& before, core::FailureKind kind) const {
  if (!before.ever_ran) return false;
  switch (core::Traits(kind).budget) {
    case core::RetryBudget::kNever:
      return false;
    case core::RetryBudget::kUser:
      return before.user_retries_used < std::min(policy_.user_retries, before.spec.user_retries.value_or(INT32_MAX));
    case core::RetryBudget::kInfrastructure:
      return before.infrastructure_retries_used <
             std::min(policy_.infrastructure_retries, before.spec.infrastructure_retries.value_or(INT32_MAX));
  }
  return false;
}

void RowRules::CheckFailure(const TakenRow& row, const AttemptTruth& truth) {
  const core::Failure& failure = *row.change.step.failure;
  const std::string& key = row.before.attempt->key;
  if (!Explains(truth, row.before, failure.kind)) {
    journal_.Break("{} failed as {}, which it did not ({})", key, core::Name(failure.kind), failure.sentence);
  }
  if (RetryIsDue(row.before, failure.kind))
    journal_.Break("{} failed as {} with budget left", key, core::Name(failure.kind));
}

// Seen time is never longer than true time but by the pace of looking.
bool RowRules::RanFor(const core::StepRef& step, absl::Duration limit) const {
  int64_t ran_us = 0;
  for (const auto& [key, attempt] : world_.attempts()) {
    if (attempt.ref.step != step || !attempt.AllStarted()) continue;
    int64_t first_us = 0;
    int64_t last_us = 0;
    for (const RankTruth& rank : attempt.ranks) {
      first_us = std::max(first_us, *rank.started_us);
      last_us = std::max(last_us, rank.ended_us.value_or(timeline_.now_us()));
    }
    ran_us += last_us - first_us;
  }
  return ran_us + kMinute >= absl::ToInt64Microseconds(limit);
}

bool RowRules::Explains(const AttemptTruth& truth, const core::Step& step, core::FailureKind kind) const {
  const auto any_rank = [&](auto holds) { return std::any_of(truth.ranks.begin(), truth.ranks.end(), holds); };
  const auto engine_says = [&](EngineEnd end) {
    return std::any_of(truth.objects.begin(), truth.objects.end(),
                       [&](const ObjectTruth& object) { return object.end == end; });
  };
  switch (kind) {
    case core::FailureKind::kUserExit:
      return any_rank([](const RankTruth& rank) {
        return rank.end_record && !rank.end.clean() && !rank.end.signalled() && rank.end.oom_kills == 0;
      });
    case core::FailureKind::kUserOom:
      return any_rank([](const RankTruth& rank) { return rank.end_record && rank.end.oom_kills > 0; });
    case core::FailureKind::kTimeLimit:
      return step.spec.time_limit && RanFor(step.ref, *step.spec.time_limit);
    case core::FailureKind::kEngineRejected:
      return truth.rejected == LaunchRejected::Kind::kEngine;
    case core::FailureKind::kImage:
      return truth.rejected == LaunchRejected::Kind::kImage || engine_says(EngineEnd::kImage);
    case core::FailureKind::kStorage:
      return truth.rejected == LaunchRejected::Kind::kStorage;
    case core::FailureKind::kStartTimeout:
      return true;  // CheckDeadline
    case core::FailureKind::kNodeLost:
      return engine_says(EngineEnd::kNodeLost);
    case core::FailureKind::kPreempted:
      return engine_says(EngineEnd::kPreempted);
    case core::FailureKind::kEvicted:
      // What the engine told is named as it says.
      return engine_says(EngineEnd::kEvicted) ||
             (any_rank([](const RankTruth& rank) { return rank.end.signalled_by == SignalledBy::kOther; }) &&
              step.attempt->engine_end != EngineEnd::kPreempted);
    case core::FailureKind::kLost:
      return any_rank([](const RankTruth& rank) { return !rank.end_record; });
    case core::FailureKind::kGpuLost:
      return !world_.FaultsOf(truth).empty();
    case core::FailureKind::kDependency:
      return false;
  }
  return false;
}

void RowRules::CheckMeterSettled(const TakenRow& row, const AttemptTruth& truth) {
  const auto& effects = row.change.effects;
  const auto settled = std::count_if(effects.begin(), effects.end(), [](const core::Effect& effect) {
    return std::holds_alternative<core::SettleMeter>(effect);
  });
  const bool ran = truth.AllStarted() && truth.plan.story != Story::kNoRecords;
  if (settled != (ran ? 1 : 0)) {
    journal_.Break("{}: {} and its meter is settled {} times", row.before.attempt->key,
                   ran ? "all ranks ran" : "it never ran as a whole", settled);
  }
}

}  // namespace tp::sim
