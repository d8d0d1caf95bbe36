#include "core/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "core/card_health.h"
#include "core/fold.h"
#include "core/judge.h"
#include "core/ledger.h"
#include "core/node_book.h"

namespace tp::core {
namespace {

// Attempts kept in the step itself; the ledger and the events keep all.
constexpr size_t kMaxPastAttempts = 32;

constexpr JobState kQ = JobState::kQueued;
constexpr JobState kS = JobState::kSubmitted;
constexpr JobState kP = JobState::kPending;
constexpr JobState kR = JobState::kRunning;
constexpr JobState kZ = JobState::kPaused;
constexpr JobState kOk = JobState::kSucceeded;
constexpr JobState kF = JobState::kFailed;
constexpr JobState kX = JobState::kStopped;

template <typename T>
const T& As(const Change& c) {
  return std::get<T>(c.event);
}

// --- Guards ---------------------------------------------------------------------------------------

bool Always(const Change&) { return true; }

template <typename T>
bool Launched(const Change& c) {
  return std::holds_alternative<T>(As<LaunchAnswered>(c));
}

template <typename T>
bool FenceWas(const Change& c) {
  const auto& ending = c.step.attempt->ending;
  return ending && ending->fence == FenceState::kAsked && std::holds_alternative<T>(As<FenceAnswered>(c));
}

bool Ending(const Change& c) { return c.step.attempt->ending.has_value(); }
bool Owned(const Change& c) { return c.step.attempt->owned(); }

// A withdrawal goes on with signals when a rank turns out to own the attempt, if its cause or an intent
// still wants the end; the others lapse, and so does a pause that was lifted before its signal.
bool GoesOnWithSignals(const Step& step) {
  if (step.stop_requested || step.pause.any()) return true;
  switch (step.attempt->ending->cause) {
    case EndCause::kWindow:
    case EndCause::kStartTimeout:
      return true;
    case EndCause::kStop:
    case EndCause::kPause:
    case EndCause::kFinished:
    case EndCause::kRankFailed:
    case EndCause::kEvicted:
    case EndCause::kRankLost:
    case EndCause::kEngine:
    case EndCause::kTimeLimit:
    case EndCause::kPendingTimeout:
    case EndCause::kRejected:
    case EndCause::kRefused:
    case EndCause::kAbsent:
      return false;
  }
  return false;
}

bool FoundInRecords(EndCause cause) {
  switch (cause) {
    case EndCause::kFinished:
    case EndCause::kRankFailed:
    case EndCause::kEvicted:
    case EndCause::kRankLost:
    case EndCause::kEngine:
      return true;
    case EndCause::kStop:
    case EndCause::kPause:
    case EndCause::kWindow:
    case EndCause::kTimeLimit:
    case EndCause::kStartTimeout:
    case EndCause::kPendingTimeout:
    case EndCause::kRejected:
    case EndCause::kRefused:
    case EndCause::kAbsent:
      return false;
  }
  return false;
}

bool FenceLostWanted(const Change& c) { return FenceWas<FenceLost>(c) && GoesOnWithSignals(c.step); }

bool ByWindow(const Change& c) { return As<PauseRequested>(c).by == Holder::kWindow; }
bool BeingStopped(const Change& c) { return c.step.stop_requested; }
bool NotOwnedNotEnding(const Change& c) { return !Owned(c) && !Ending(c); }
bool WindowOverUnowned(const Change& c) { return ByWindow(c) && NotOwnedNotEnding(c); }
bool OwnedNotEnding(const Change& c) { return Owned(c) && !Ending(c); }
bool Finishing(const Change& c) { return AllClean(*c.step.attempt); }

bool SnapshotGoneForResume(const Change& c) {
  const bool needed = !c.step.attempt || (Ending(c) && c.step.attempt->ending->cause == EndCause::kPause);
  return needed && !As<ResumeRequested>(c).snapshot_available;
}
bool HolderRemains(const Change& c) {
  PauseHolders left = c.step.pause;
  left.Lift(As<ResumeRequested>(c).by);
  return left.any();
}
bool SnapshotGoneForRetry(const Change& c) { return !As<RetryRequested>(c).snapshot_available; }

bool SawNothing(const Change& c) { return std::holds_alternative<Unknown>(As<Observed>(c).observation); }
bool Started(const Change& c) { return Owned(c) && AllStarted(*c.step.attempt); }

// Until the first signal is sent, what the records say comes before what was asked. Before a pause only
// what ranks say of themselves does: every other end is PAUSED.
bool NewCause(const Change& c) {
  const Attempt& attempt = *c.step.attempt;
  if (!attempt.owned()) return false;
  const auto found = ObservedCause(attempt);
  if (!found || !attempt.ending) return found.has_value();
  if (attempt.ending->sent != SignalSent::kNone || FoundInRecords(attempt.ending->cause)) return false;
  if (attempt.ending->cause != EndCause::kPause || !c.step.pause.any()) return true;
  return found->cause == EndCause::kRankFailed || found->cause == EndCause::kFinished;
}

template <Outcome kOutcome>
bool Leaves(const Change& c) {
  return MayLeave(*c.step.attempt) && Judge(c.step, c.policy) == kOutcome;
}

// What broke under the job may be found only by the look that its end asked for.
bool AwaitsLook(const Change& c) {
  const auto& asked = c.step.attempt->sight.look_asked;
  return asked && c.now < *asked + c.policy.look_patience;
}
template <Outcome kOutcome>
bool Fails(const Change& c) {
  return Leaves<kOutcome>(c) && !AwaitsLook(c);
}

bool FindsFault(const Change& c) { return AnyNewCardFault(*c.step.attempt, As<CardsLooked>(c).faults); }
bool Names(const CardFault& fault, const CardPutBack& card) {
  return fault.node == card.node && fault.card == card.card;
}
// As far as it was seen: no rank of it has begun.
bool WasFoundBeforeItBegan(const Change& c) {
  const Attempt& attempt = *c.step.attempt;
  const bool begun = std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                                 [](const RankObservation& rank) { return rank.started || rank.ended; });
  const std::vector<CardFault>& faults = attempt.sight.card_faults;
  return !begun && std::any_of(faults.begin(), faults.end(),
                               [&c](const CardFault& fault) { return Names(fault, As<CardPutBack>(c)); });
}
bool LookWasAsked(const Change& c) {
  const auto& asked = c.step.attempt->sight.look_asked;
  return asked && *asked <= As<CardsLooked>(c).began;
}

bool OverTimeLimit(const Change& c) {
  return !Ending(c) && c.step.spec.time_limit && c.step.ran >= *c.step.spec.time_limit;
}
bool OverStartTimeout(const Change& c) {
  const Attempt& attempt = *c.step.attempt;
  if (Ending(c) || !attempt.granted_at) return false;
  return attempt.sight.starting >= c.step.spec.start_timeout.value_or(c.policy.start_timeout);
}
bool OverPendingTimeout(const Change& c) {
  const Attempt& attempt = *c.step.attempt;
  if (!NotOwnedNotEnding(c) || attempt.granted_at || !c.step.spec.pending_timeout) return false;
  return attempt.sight.pending >= *c.step.spec.pending_timeout;
}
// Nothing is left of it (FoldObservation counts absences) and no rank ever claimed it.
bool NeverCame(const Change& c) { return NotOwnedNotEnding(c) && c.step.attempt->freed; }
bool NeverCameForItsImage(const Change& c) { return NeverCame(c) && c.step.attempt->engine_end == EngineEnd::kImage; }

bool Due(const Change& c) {
  const auto& ending = c.step.attempt->ending;
  return ending && ending->escalate_at && c.now >= *ending->escalate_at;
}
template <SignalSent kSent>
bool DueAfter(const Change& c) {
  return Due(c) && c.step.attempt->ending->sent == kSent;
}
// A job has its grace while it can be seen: a signal may not have reached it before.
template <SignalSent kSent>
bool GraceOver(const Change& c) {
  return DueAfter<kSent>(c) && !c.step.attempt->sight.unknown_since;
}
bool FenceDue(const Change& c) {
  return DueAfter<SignalSent::kNone>(c) && c.step.attempt->ending->fence == FenceState::kAsked;
}
bool FencedDue(const Change& c) {
  return DueAfter<SignalSent::kNone>(c) && c.step.attempt->ending->fence == FenceState::kWon;
}
bool LeftoverDue(const Change& c) {
  return DueAfter<SignalSent::kNone>(c) && c.step.attempt->ending->fence == FenceState::kNotAsked;
}

// --- Actions: intents -----------------------------------------------------------------------------

void Nothing(Change&) {}

template <size_t N>
struct Text {
  // NOLINTNEXTLINE(google-explicit-constructor): a string literal is to become one by itself.
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};
// Says a sentence and does nothing else.
template <Text kSentence>
void Say(Change& c) {
  c.note = kSentence.value;
}

void StopAtOnce(Change& c) {
  c.step.stop_requested = true;
  c.step.pause = {};
  c.step.cooldown_until.reset();
}

void HoldPause(Change& c) { c.step.pause.Add(As<PauseRequested>(c).by); }
void LiftPause(Change& c) { c.step.pause.Lift(As<ResumeRequested>(c).by); }

void LiftPartly(Change& c) {
  LiftPause(c);
  c.note = c.step.pause.admin ? "still paused by an admin" : "still paused by its owner";
}

void StopForDependency(Change& c) {
  c.step.failure = Failure{FailureKind::kDependency, As<DependencyFailed>(c).sentence};
  c.step.pause = {};
  c.note = As<DependencyFailed>(c).sentence;
}

void RetryByHand(Change& c) {
  Step& step = c.step;
  step.retry_count += 1;
  step.user_retries_used = 0;
  step.infrastructure_retries_used = 0;
  step.relaunches = 0;
  step.ran = absl::ZeroDuration();
  step.stop_requested = false;
  step.pause = {};
  step.cooldown_until.reset();
  step.backoff_until.reset();
  step.failure.reset();
}

// --- Actions: launching ---------------------------------------------------------------------------

void BeginAttempt(Change& c) {
  const auto& admitted = As<Admitted>(c);
  Step& step = c.step;
  step.attempts += 1;
  step.cooldown_until.reset();
  step.backoff_until.reset();
  step.backoff_reason.clear();
  Attempt attempt;
  attempt.number = step.attempts;
  attempt.key = admitted.key;
  attempt.nonce = admitted.nonce;
  attempt.created_at = c.now;
  attempt.sight.last_seen = c.now;
  attempt.shape = admitted.shape;
  attempt.placement = admitted.placement;
  attempt.ranks = EmptyRanks(admitted.placement);
  step.attempt = std::move(attempt);
  c.effects.emplace_back(LaunchAttempt{});
}

void Accept(Change& c) { c.step.attempt->handover = Handover::kAccepted; }

void LookUp(Change& c) {
  c.step.attempt->handover = Handover::kIndeterminate;
  c.note = std::get<LaunchIndeterminate>(As<LaunchAnswered>(c)).reason;
}

void AskFence(Change& c, EndCause cause, std::optional<Failure> failure) {
  struct Ending ending;
  ending.cause = cause;
  ending.failure = std::move(failure);
  ending.fence = FenceState::kAsked;
  c.step.attempt->ending = std::move(ending);
  c.effects.emplace_back(FenceAttempt{});
}

Failure RejectedFailure(const LaunchRejected& rejected) {
  const std::string words = rejected.reason.empty() ? "the engine refused it without a reason" : rejected.reason;
  switch (rejected.kind) {
    case LaunchRejected::Kind::kEngine:
      return {FailureKind::kEngineRejected, words};
    case LaunchRejected::Kind::kImage:
      return {FailureKind::kImage, words};
    case LaunchRejected::Kind::kStorage:
      return {FailureKind::kStorage, words};
  }
  return {FailureKind::kEngineRejected, words};
}

void Rejected(Change& c) {
  c.step.attempt->handover = Handover::kAccepted;  // the call is over
  const auto& rejected = std::get<LaunchRejected>(As<LaunchAnswered>(c));
  c.note = rejected.reason;
  AskFence(c, EndCause::kRejected, RejectedFailure(rejected));
}

void Refused(Change& c) {
  c.step.attempt->handover = Handover::kAccepted;
  c.note = std::get<LaunchRefused>(As<LaunchAnswered>(c)).reason;
  c.step.backoff_reason = c.note;
  AskFence(c, EndCause::kRefused, std::nullopt);
}

void CallOver(Change& c) { c.step.attempt->handover = Handover::kAccepted; }

void LostBeforeItCame(Change& c) {
  const std::string& words = c.step.attempt->sight.engine_reason;
  c.step.backoff_reason = words.empty() ? "nothing is left of the last launch, and no rank of it started" : words;
  AskFence(c, EndCause::kAbsent, std::nullopt);
}

void RejectedForItsImage(Change& c) {
  Failure failure = RejectedFailure({LaunchRejected::Kind::kImage, c.step.attempt->sight.engine_reason});
  c.note = failure.sentence;
  AskFence(c, EndCause::kRejected, std::move(failure));
}

// --- Actions: ending ------------------------------------------------------------------------------

// A grace counts only while the job is seen. Given under Unknown it begins where that began: the next sight
// moves it by all of that.
void Send(Change& c, StopLevel level, SignalSent sent, absl::Duration until_next) {
  auto& ending = *c.step.attempt->ending;
  ending.sent = sent;
  ending.escalate_at = (InGrace(ending) ? c.step.attempt->sight.unknown_since.value_or(c.now) : c.now) + until_next;
  c.effects.emplace_back(SignalAttempt{level});
}
void SendTerm(Change& c) { Send(c, StopLevel::kTerm, SignalSent::kTerm, c.policy.stop_grace); }
void SendKill(Change& c) { Send(c, StopLevel::kKill, SignalSent::kKill, c.policy.kill_repeat); }

void SetCause(Change& c, EndCause cause, std::optional<Failure> failure) {
  auto& slot = c.step.attempt->ending;
  if (!slot) slot.emplace();
  slot->cause = cause;
  slot->failure = std::move(failure);
}

void StopUnowned(Change& c) {
  c.step.stop_requested = true;
  if (Ending(c)) {
    c.step.attempt->ending->cause = EndCause::kStop;
    return;
  }
  AskFence(c, EndCause::kStop, std::nullopt);
}

void StopOwned(Change& c) {
  c.step.stop_requested = true;
  if (!Ending(c)) SetCause(c, EndCause::kStop, std::nullopt);
  c.step.attempt->ending->cause = EndCause::kStop;
  c.step.attempt->ending->fence = FenceState::kNotAsked;  // it is lost, whenever the answer comes
  if (c.step.attempt->ending->sent < SignalSent::kTerm && AnyLeft(*c.step.attempt)) SendTerm(c);
}

void StopFinishing(Change& c) {
  c.step.stop_requested = true;
  c.note = "every rank had already ended with exit 0: it becomes SUCCEEDED";
}

void PauseUnowned(Change& c) {
  HoldPause(c);
  AskFence(c, EndCause::kPause, std::nullopt);
}

void WindowWithdraws(Change& c) { AskFence(c, EndCause::kWindow, std::nullopt); }

void Warn(Change& c, absl::Duration grace) { Send(c, StopLevel::kWarn, SignalSent::kWarn, grace); }

void PauseOwned(Change& c) {
  HoldPause(c);
  SetCause(c, EndCause::kPause, std::nullopt);
  Warn(c, As<PauseRequested>(c).grace);
}

void FenceIsWon(Change& c) {
  auto& ending = *c.step.attempt->ending;
  ending.fence = FenceState::kWon;
  ending.escalate_at = c.now + c.policy.kill_repeat;
  c.step.attempt->claim = Claim::kFenced;
  c.effects.emplace_back(RemoveAttempt{});
}

void MarkOwned(Change& c) {
  Attempt& attempt = *c.step.attempt;
  attempt.handover = Handover::kAccepted;
  attempt.ending->fence = FenceState::kNotAsked;
  attempt.ending->escalate_at.reset();
  if (attempt.owned()) return;
  const bool this_launch = std::get<FenceLost>(As<FenceAnswered>(c)).owner_nonce == attempt.nonce;
  attempt.claim = this_launch ? Claim::kThisLaunch : Claim::kOtherLaunch;
}

// A rank owns it after all: it is treated as RUNNING.
void FenceLostGoOn(Change& c) {
  MarkOwned(c);
  const EndCause cause = c.step.attempt->ending->cause;
  if (c.step.stop_requested || cause == EndCause::kStartTimeout) {
    SendTerm(c);
    return;
  }
  if (cause == EndCause::kWindow) c.step.pause.Add(Holder::kWindow);
  SetCause(c, EndCause::kPause, std::nullopt);
  Warn(c, c.policy.pause_grace);
}

void FenceLostLapse(Change& c) {
  MarkOwned(c);
  c.step.backoff_reason.clear();
  c.step.attempt->ending.reset();
}

void FenceLater(Change& c) {
  c.note = std::get<FenceFailed>(As<FenceAnswered>(c)).reason;
  if (c.step.backoff_reason.empty()) c.step.backoff_reason = c.note;
  c.step.attempt->ending->escalate_at = c.now + c.policy.fence_repeat;
}

// An object that a late create brings up after the first removal holds cards for nothing.
void RemoveAgain(Change& c) {
  c.step.attempt->ending->escalate_at = c.now + c.policy.kill_repeat;
  c.effects.emplace_back(RemoveAttempt{});
}

void FenceAgain(Change& c) {
  c.step.attempt->ending->escalate_at.reset();
  c.effects.emplace_back(FenceAttempt{});
}

void BeginEnd(Change& c) {
  Cause cause = *ObservedCause(*c.step.attempt);
  if (cause.failure) c.note = cause.failure->sentence;
  SetCause(c, cause.cause, std::move(cause.failure));
  c.step.attempt->ending->fence = FenceState::kNotAsked;
  c.step.attempt->ending->escalate_at = c.now + c.policy.stop_grace;
  if (As<Observed>(c).cards_watched && CardsMayExplain(*c.step.attempt)) c.step.attempt->sight.look_asked = c.now;
  if (AnyLeft(*c.step.attempt)) SendTerm(c);
}

void KeepCardFaults(Change& c) {
  Sight& sight = c.step.attempt->sight;
  for (const CardFault& fault : As<CardsLooked>(c).faults) {
    if (HasCardFault(*c.step.attempt, fault)) continue;
    sight.card_faults.push_back(fault);
    c.note = fmt::format("card {} of {} is broken: {}", fault.card, fault.node, fault.why);
  }
}

void ForgetCardFault(Change& c) {
  const auto& card = As<CardPutBack>(c);
  std::erase_if(c.step.attempt->sight.card_faults, [&card](const CardFault& fault) { return Names(fault, card); });
  c.note = fmt::format("card {} of {} was put back into service before the job began", card.card, card.node);
}

void TakeLook(Change& c) { c.step.attempt->sight.look_asked.reset(); }

void EndForTimeLimit(Change& c) {
  Failure failure{FailureKind::kTimeLimit,
                  fmt::format("ran its time limit of {}: ask for more with --time-limit, or retry to continue from the "
                              "newest checkpoint",
                              ToStd(absl::FormatDuration(*c.step.spec.time_limit)))};
  c.note = failure.sentence;
  SetCause(c, EndCause::kTimeLimit, std::move(failure));
  SendTerm(c);
}

void EndForStartTimeout(Change& c) {
  Failure failure{
      FailureKind::kStartTimeout,
      "not every rank came up in time after the cards were given: `tp logs --system` says how far each came"};
  c.note = failure.sentence;
  if (!Owned(c)) {
    AskFence(c, EndCause::kStartTimeout, std::move(failure));
    return;
  }
  SetCause(c, EndCause::kStartTimeout, std::move(failure));
  SendTerm(c);
}

void WithdrawPending(Change& c) {
  c.step.backoff_reason = "the engine did not start it within its pending timeout";
  AskFence(c, EndCause::kPendingTimeout, std::nullopt);
}

// --- Actions: running and leaving -----------------------------------------------------------------

void Run(Change& c) {
  c.step.ever_ran = true;
  c.step.relaunches = 0;
  c.step.attempt->meter = OpenMeter(c.step.attempt->ranks, c.now);
}

void RecordPast(Change& c, JobState outcome, const std::optional<Failure>& failure) {
  Step& step = c.step;
  const Attempt& attempt = *step.attempt;
  PastAttempt past;
  past.number = attempt.number;
  past.created_at = attempt.created_at;
  past.ended_at = c.now;
  past.outcome = outcome;
  past.failure = failure;
  past.exit = DescribeExit(attempt);
  past.backend = attempt.shape.backend;
  for (const PoolPlacement& pool : attempt.placement) {
    for (const RankPlacement& rank : pool.ranks) past.nodes.push_back(rank.node);
  }
  past.cards = attempt.cards();
  past.metered_ms = attempt.meter ? MeteredMs(*attempt.meter) : 0;
  if (step.past.size() == kMaxPastAttempts) step.past.erase(step.past.begin());
  step.exit = past.exit;
  step.past.push_back(std::move(past));
}

void SettleMeterNow(Change& c) {
  Attempt& attempt = *c.step.attempt;
  if (!attempt.meter) return;
  if (!attempt.meter->closed_unix_us) CloseMeter(*attempt.meter, attempt.ranks, attempt.sight.last_alive);
  c.effects.emplace_back(SettleMeter{*attempt.meter, attempt.ranks});
}

// The commit that releases the attempt's cards.
void LeaveFor(Change& c, JobState outcome, const std::optional<Failure>& failure) {
  SettleMeterNow(c);
  RecordPast(c, outcome, failure);
  if (c.step.attempt->ending->fence != FenceState::kWon) c.effects.emplace_back(RemoveAttempt{});
  c.step.attempt.reset();
}

void LeaveSucceeded(Change& c) {
  LeaveFor(c, kOk, std::nullopt);
  c.step.pause = {};
}

void LeaveStopped(Change& c) {
  LeaveFor(c, kX, std::nullopt);
  c.step.pause = {};
}

void LeaveFailed(Change& c) {
  Failure failure = FailureOf(*c.step.attempt);
  c.note = failure.sentence;
  LeaveFor(c, kF, failure);
  c.step.failure = std::move(failure);
  c.step.pause = {};
}

void LeavePaused(Change& c) { LeaveFor(c, kZ, std::nullopt); }
void LeaveResumed(Change& c) { LeaveFor(c, kQ, std::nullopt); }

void TakeRetry(Change& c) {
  Step& step = c.step;
  const Failure failure = FailureOf(*step.attempt);
  const bool user = Traits(failure.kind).budget == RetryBudget::kUser;
  (user ? step.user_retries_used : step.infrastructure_retries_used) += 1;
  step.retry_count += 1;
  step.cooldown_until = c.now + c.policy.retry_cooldown;
  step.ran = absl::ZeroDuration();
  if (!user) step.avoid_node = BadNode(*step.attempt);
  c.note = fmt::format("{}; retry {} follows", failure.sentence, step.retry_count);
}

void LeaveRetried(Change& c) {
  const Failure failure = FailureOf(*c.step.attempt);
  TakeRetry(c);
  LeaveFor(c, kQ, failure);
}

void LeavePausedAfterFailure(Change& c) {
  const Failure failure = FailureOf(*c.step.attempt);
  TakeRetry(c);
  LeaveFor(c, kZ, failure);
}

absl::Duration Backoff(const Policy& policy, int32_t relaunches) {
  absl::Duration delay = policy.relaunch_backoff;
  for (int32_t i = 1; i < relaunches && delay < policy.relaunch_backoff_max; ++i) delay *= 2;
  return std::min(delay, policy.relaunch_backoff_max);
}

void LeaveRelaunched(Change& c) {
  Step& step = c.step;
  const EndCause cause = step.attempt->ending->cause;
  LeaveFor(c, kQ, std::nullopt);
  if (cause == EndCause::kWindow) return;  // the WINDOW gate holds it, nothing backs off
  step.relaunches += 1;
  step.backoff_until = c.now + Backoff(c.policy, step.relaunches);
}

// --- The table ------------------------------------------------------------------------------------

Table MakeTable() {
  using enum EventKind;
  constexpr auto kStay = std::nullopt;
  return {
      // QUEUED: nothing exists on an engine.
      {{kQ}, kAdmitted, "all gates are open", Always, kS, "cards taken, a new attempt, Launch", BeginAttempt},
      {{kQ}, kStop, "", Always, kX, "nothing exists on an engine", StopAtOnce},
      {{kQ}, kPause, "by a window", ByWindow, kStay, "the WINDOW gate holds it", Nothing},
      {{kQ}, kPause, "by owner or admin", Always, kZ, "holder noted; a cooldown applies after resume", HoldPause},
      {{kQ}, kResume, "", Always, kStay, "it wants to run already", Say<"it is not paused">},
      {{kQ},
       kRetry,
       "",
       Always,
       kStay,
       "refused",
       Say<"it is waiting to run: there is nothing to retry">,
       Then::kRefuse},
      {{kQ}, kDependencyFailed, "", Always, kX, "it can never run", StopForDependency},

      // PAUSED: stopped on purpose, nothing held.
      {{kZ}, kStop, "", Always, kX, "nothing exists on an engine", StopAtOnce},
      {{kZ}, kPause, "", Always, kStay, "holder noted", HoldPause},
      {{kZ},
       kResume,
       "the snapshot is gone",
       SnapshotGoneForResume,
       kStay,
       "refused",
       Say<"its snapshot is gone, so it can't be launched again: submit it anew">,
       Then::kRefuse},
      {{kZ}, kResume, "another holder remains", HolderRemains, kStay, "own hold lifted", LiftPartly},
      {{kZ}, kResume, "no holder remains", Always, kQ, "all gates again", LiftPause},
      {{kZ}, kRetry, "", Always, kStay, "refused", Say<"it is paused: resume it">, Then::kRefuse},
      {{kZ}, kDependencyFailed, "", Always, kX, "it can never run", StopForDependency},

      // Terminal states.
      {{kOk, kF}, kStop, "", Always, kStay, "refused", Say<"it is already over">, Then::kRefuse},
      {{kX}, kStop, "", Always, kStay, "stopped already", Say<"it is stopped already">},
      {{kOk, kF, kX}, kPause, "", Always, kStay, "refused", Say<"it is already over">, Then::kRefuse},
      {{kOk, kF, kX}, kResume, "", Always, kStay, "refused", Say<"it is over, not paused: use retry">, Then::kRefuse},
      {{kOk}, kRetry, "", Always, kStay, "refused", Say<"it succeeded: use clone to run it anew">, Then::kRefuse},
      {{kF, kX},
       kRetry,
       "the snapshot is gone",
       SnapshotGoneForRetry,
       kStay,
       "refused",
       Say<"its snapshot is gone, so it can't be launched again: submit it anew">,
       Then::kRefuse},
      {{kF, kX}, kRetry, "", Always, kQ, "retry_count + 1, budgets and time limit renewed", RetryByHand},

      // What the launch call came to. In any other state the answer is late.
      {{kS}, kLaunchAnswered, "accepted", Launched<LaunchAccepted>, kP, "the engine has it", Accept},
      {{kS}, kLaunchAnswered, "indeterminate", Launched<LaunchIndeterminate>, kStay, "look it up by its key", LookUp},
      {{kS}, kLaunchAnswered, "rejected or refused, already being ended", Ending, kStay, "the call is over", CallOver},
      {{kS}, kLaunchAnswered, "rejected for good", Launched<LaunchRejected>, kStay, "Fence", Rejected},
      {{kS}, kLaunchAnswered, "refused for now", Launched<LaunchRefused>, kStay, "Fence", Refused},

      // What the fence came to.
      {{kS, kP}, kFenceAnswered, "won", FenceWas<FenceWon>, kStay, "nothing of it can start; Remove", FenceIsWon},
      {{kS, kP},
       kFenceAnswered,
       "lost, its end is still wanted",
       FenceLostWanted,
       kP,
       "it is treated as RUNNING: signal it",
       FenceLostGoOn},
      {{kR}, kFenceAnswered, "lost, its end is still wanted", FenceLostWanted, kStay, "signal it", FenceLostGoOn},
      {{kS, kP}, kFenceAnswered, "lost, otherwise", FenceWas<FenceLost>, kP, "the withdrawal lapses", FenceLostLapse},
      {{kR}, kFenceAnswered, "lost, otherwise", FenceWas<FenceLost>, kStay, "the withdrawal lapses", FenceLostLapse},
      {{kS, kP, kR}, kFenceAnswered, "failed", FenceWas<FenceFailed>, kStay, "try again", FenceLater},

      // Stop beats pause beats retry.
      {{kS, kP, kR}, kStop, "being stopped", BeingStopped, kStay, "stopping already", Say<"it is being stopped">},
      {{kP, kR}, kStop, "every rank has ended 0", Finishing, kStay, "it becomes SUCCEEDED", StopFinishing},
      {{kP, kR}, kStop, "a rank owns it", Owned, kStay, "TERM, stop_grace, KILL", StopOwned},
      {{kS, kP}, kStop, "no rank is known to own it", Always, kStay, "Fence", StopUnowned},

      {{kS, kP, kR},
       kPause,
       "being stopped",
       BeingStopped,
       kStay,
       "refused",
       Say<"it is being stopped">,
       Then::kRefuse},
      {{kS, kP},
       kPause,
       "by a window, no rank owns it",
       WindowOverUnowned,
       kStay,
       "Fence; then QUEUED",
       WindowWithdraws},
      {{kS, kP}, kPause, "no rank owns it", NotOwnedNotEnding, kStay, "Fence; then PAUSED", PauseUnowned},
      {{kP, kR},
       kPause,
       "a rank owns it",
       OwnedNotEnding,
       kStay,
       "warning, pause_grace, TERM, stop_grace, KILL",
       PauseOwned},
      {{kS, kP, kR}, kPause, "it is ending", Always, kStay, "holder noted", HoldPause},

      {{kS, kP, kR},
       kResume,
       "being stopped",
       BeingStopped,
       kStay,
       "refused",
       Say<"it is being stopped">,
       Then::kRefuse},
      {{kS, kP, kR},
       kResume,
       "being paused, the snapshot is gone",
       SnapshotGoneForResume,
       kStay,
       "refused",
       Say<"its snapshot is gone, so it can't be launched again: it stays paused">,
       Then::kRefuse},
      {{kS, kP, kR}, kResume, "", Always, kStay, "own hold lifted; a pause under way ends in QUEUED", LiftPause},
      {{kS, kP, kR}, kRetry, "", Always, kStay, "refused", Say<"it is not over yet">, Then::kRefuse},

      // What was observed. Records are taken in before the guards look.
      {{kS, kP, kR}, kObserved, "unknown", SawNothing, kStay, "shown, nothing else", Nothing},
      {{kS}, kObserved, "a rank owns the claim", Owned, kP, "adopted", Accept, Then::kAgain},
      {{kP}, kObserved, "every rank has a start record", Started, kR, "the meter opens", Run, Then::kAgain},
      {{kP, kR},
       kObserved,
       "the evidence names an end",
       NewCause,
       kStay,
       "TERM to what is left",
       BeginEnd,
       Then::kAgain},

      {{kP, kR},
       kObserved,
       "gone; every rank 0, unsignalled",
       Leaves<Outcome::kSucceeded>,
       kOk,
       "cards released",
       LeaveSucceeded},
      {{kS, kP, kR}, kObserved, "gone; stop was asked", Leaves<Outcome::kStopped>, kX, "cards released", LeaveStopped},
      {{kS, kP, kR}, kObserved, "gone; paused", Leaves<Outcome::kPaused>, kZ, "cards released", LeavePaused},
      {{kS, kP, kR},
       kObserved,
       "gone; paused, resumed since",
       Leaves<Outcome::kResumed>,
       kQ,
       "cards released",
       LeaveResumed},
      {{kS, kP},
       kObserved,
       "gone; never ran",
       Leaves<Outcome::kRelaunched>,
       kQ,
       "BACKEND, the delay grows",
       LeaveRelaunched},
      {{kS, kP, kR},
       kObserved,
       "gone; failed, budget left",
       Fails<Outcome::kRetried>,
       kQ,
       "COOLDOWN, retry_count + 1",
       LeaveRetried},
      {{kS, kP, kR},
       kObserved,
       "gone; failed, budget left, under a pause",
       Fails<Outcome::kPausedAfterFailure>,
       kZ,
       "retry_count + 1, the cooldown is kept",
       LeavePausedAfterFailure},
      {{kS, kP, kR}, kObserved, "gone; failed", Fails<Outcome::kFailed>, kF, "cards released", LeaveFailed},

      {{kR}, kObserved, "its time limit is over", OverTimeLimit, kStay, "TERM, stop_grace, KILL", EndForTimeLimit},
      {{kS, kP},
       kObserved,
       "its start timeout is over",
       OverStartTimeout,
       kStay,
       "Fence, or TERM where owned",
       EndForStartTimeout},
      {{kS, kP},
       kObserved,
       "its pending timeout is over",
       OverPendingTimeout,
       kStay,
       "Fence; then QUEUED",
       WithdrawPending},
      {{kS, kP},
       kObserved,
       "gone, never owned; its image can't be used",
       NeverCameForItsImage,
       kStay,
       "Fence; then FAILED",
       RejectedForItsImage},
      {{kS, kP}, kObserved, "gone, never owned", NeverCame, kStay, "Fence; then QUEUED", LostBeforeItCame},
      {{kS, kP, kR}, kObserved, "nothing new", Always, kStay, "seen", Nothing},

      // Deadlines of the step's own.
      {{kS, kP}, kTimer, "fenced, and still not gone", FencedDue, kStay, "Remove again", RemoveAgain},
      {{kS, kP, kR}, kTimer, "the fence is to be tried again", FenceDue, kStay, "Fence", FenceAgain},
      {{kP, kR},
       kTimer,
       "its records say it is over, yet something of it is left",
       LeftoverDue,
       kStay,
       "KILL",
       SendKill},
      {{kP, kR}, kTimer, "the warning's grace is over", GraceOver<SignalSent::kWarn>, kStay, "TERM", SendTerm},
      {{kP, kR}, kTimer, "stop_grace is over", GraceOver<SignalSent::kTerm>, kStay, "KILL", SendKill},
      {{kP, kR}, kTimer, "still not gone after KILL", DueAfter<SignalSent::kKill>, kStay, "KILL again", SendKill},

      // What became of its cards. A job goes on as long as it can: they only name its end.
      {{kS, kP, kR},
       kCardsLooked,
       "one of its own is broken",
       FindsFault,
       kStay,
       "kept with the attempt: a failure is gpu_lost",
       KeepCardFaults,
       Then::kAgain},
      {{kS, kP},
       kCardPutBack,
       "one of its own was broken, and no rank has begun",
       WasFoundBeforeItBegan,
       kStay,
       "forgotten: the job begins on a sound card",
       ForgetCardFault},
      {{kP, kR}, kCardsLooked, "its end waits for the look", LookWasAsked, kStay, "it may be named", TakeLook},
  };
}

}  // namespace

const Table& ProductTable() {
  static const Table table = MakeTable();
  return table;
}

}  // namespace tp::core
