#include "core/judge.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <fmt/format.h>

#include "core/log_mark.h"

namespace tp::core {
namespace {

std::string SignalName(int signal) {
  struct Named {
    int number;
    std::string_view name;
  };
  static constexpr std::array<Named, 14> kNames = {{{SIGHUP, "SIGHUP"},
                                                    {SIGINT, "SIGINT"},
                                                    {SIGQUIT, "SIGQUIT"},
                                                    {SIGILL, "SIGILL"},
                                                    {SIGTRAP, "SIGTRAP"},
                                                    {SIGABRT, "SIGABRT"},
                                                    {SIGBUS, "SIGBUS"},
                                                    {SIGFPE, "SIGFPE"},
                                                    {SIGKILL, "SIGKILL"},
                                                    {SIGUSR1, "SIGUSR1"},
                                                    {SIGSEGV, "SIGSEGV"},
                                                    {SIGPIPE, "SIGPIPE"},
                                                    {SIGTERM, "SIGTERM"},
                                                    {SIGXCPU, "SIGXCPU"}}};
  for (const Named& named : kNames) {
    if (named.number == signal) return std::string(named.name);
  }
  return fmt::format("signal {}", signal);
}

std::string RankName(const RankObservation& rank) { return fmt::format("rank {}-{}", rank.pool, rank.rank); }

bool FailedByItself(const RankObservation& rank) {
  return rank.ended && !rank.ended->signalled() && !rank.ended->clean();
}

// Of several whose ends were read at once, the one whose log tells most.
const RankObservation* FirstFailed(const Attempt& attempt) {
  const RankObservation* first = nullptr;
  for (const RankObservation& rank : attempt.ranks) {
    if (!FailedByItself(rank)) continue;
    if (first == nullptr || rank.ended->log_mark < first->ended->log_mark) first = &rank;
  }
  return first;
}

bool LostWithoutRecord(const RankObservation& rank) { return rank.tree == Tree::kGone && !rank.ended; }

// A process of the rank was killed for memory: the rank's first process itself, or a child whose end it
// reports with an exit code of its own, as torchrun does.
bool OutOfMemory(const EndRecord& end, EngineEnd engine_end) {
  return end.oom_kills > 0 || (end.exit == ExitKind::kKilled && engine_end == EngineEnd::kOutOfMemory);
}

Failure RankFailure(const RankObservation& rank, EngineEnd engine_end) {
  const EndRecord& end = *rank.ended;
  const std::string how = DescribeRankExit(end);
  if (OutOfMemory(end, engine_end)) {
    return {FailureKind::kUserOom,
            fmt::format("{}: {}, out of memory: use less memory a rank or ask for more cards", RankName(rank), how)};
  }
  if (end.exit == ExitKind::kNotStarted) {
    return {FailureKind::kUserExit,
            fmt::format("{}: {}: check the command and that the file is in the snapshot", RankName(rank), how)};
  }
  if (const auto meaning = MeaningOf(end.log_mark)) {
    return {meaning->kind, fmt::format("{}: {}: {}", RankName(rank), how, meaning->sentence)};
  }
  return {FailureKind::kUserExit, fmt::format("{}: {}: its log says why", RankName(rank), how)};
}

Failure EvictionFailure(const RankObservation& rank) {
  return {
      FailureKind::kEvicted,
      fmt::format("{}: got SIGTERM from outside tp ({}): ask the admin of {} what ended it, or retry", RankName(rank),
                  DescribeRankExit(*rank.ended), rank.ended->at.host.empty() ? "its node" : rank.ended->at.host)};
}

Failure LostFailure(const RankObservation& rank) {
  return {FailureKind::kLost,
          fmt::format("{}: its runner and processes are gone and left no end record: something killed the runner, "
                      "or the host lost it; retry continues from the newest checkpoint",
                      RankName(rank))};
}

// The first that was found: what followed may be its consequence.
Failure CardFailure(const Attempt& attempt) {
  const CardFault& fault = attempt.sight.card_faults.front();
  return {
      FailureKind::kGpuLost,
      fmt::format("card {} of {} broke under it ({}) and it ended with {}: the card is out of service until an admin "
                  "has seen to it; retry continues from the newest checkpoint on other cards",
                  fault.card, fault.node, fault.why, DescribeExit(attempt))};
}

std::optional<Failure> EngineFailure(EngineEnd end, const std::string& reason) {
  const std::string words = reason.empty() ? "the engine gave no reason" : reason;
  switch (end) {
    case EngineEnd::kNone:
    case EngineEnd::kExitedZero:
      return std::nullopt;
    case EngineEnd::kFailed:
      return Failure{FailureKind::kUserExit, fmt::format("the engine reports a failed exit: {}", words)};
    case EngineEnd::kOutOfMemory:
      return Failure{FailureKind::kUserOom, fmt::format("out of memory: {}", words)};
    case EngineEnd::kEvicted:
      return Failure{FailureKind::kEvicted, fmt::format("the engine evicted it: {}", words)};
    case EngineEnd::kPreempted:
      return Failure{FailureKind::kPreempted, fmt::format("the engine preempted it: {}", words)};
    case EngineEnd::kNodeLost:
      return Failure{FailureKind::kNodeLost, fmt::format("a node was lost: {}", words)};
    case EngineEnd::kTimeLimit:
      return Failure{FailureKind::kTimeLimit, fmt::format("the engine's time limit ended it: {}", words)};
    case EngineEnd::kImage:
      return Failure{FailureKind::kImage, fmt::format("the image could not be used: {}", words)};
  }
  return std::nullopt;
}

// Whether a TERM that tpd did not send comes from what the engine says it did.
bool ExplainsTerm(EngineEnd end) {
  switch (end) {
    case EngineEnd::kEvicted:
    case EngineEnd::kPreempted:
    case EngineEnd::kNodeLost:
    case EngineEnd::kTimeLimit:
      return true;
    case EngineEnd::kNone:
    case EngineEnd::kExitedZero:
    case EngineEnd::kFailed:
    case EngineEnd::kOutOfMemory:
    case EngineEnd::kImage:
      return false;
  }
  return false;
}

// Without records an exit 0 counts only while tpd has not signalled the attempt for another cause.
bool SignalledByTpd(const Attempt& attempt) {
  return attempt.ending && attempt.ending->sent != SignalSent::kNone && attempt.ending->cause != EndCause::kFinished;
}

bool EngineSaysClean(const Attempt& attempt) {
  return attempt.engine_end == EngineEnd::kExitedZero && attempt.owned() && !SignalledByTpd(attempt) &&
         std::none_of(attempt.ranks.begin(), attempt.ranks.end(), [](const RankObservation& rank) {
           return rank.ended && (rank.ended->signalled() || !rank.ended->clean());
         });
}

Outcome JudgeFailure(const Step& step, const Policy& policy) {
  if (!RetryAllowed(step, FailureOf(*step.attempt), policy)) return Outcome::kFailed;
  return step.pause.any() ? Outcome::kPausedAfterFailure : Outcome::kRetried;
}

}  // namespace

bool AllStarted(const Attempt& attempt) {
  return !attempt.ranks.empty() && std::all_of(attempt.ranks.begin(), attempt.ranks.end(),
                                               [](const RankObservation& rank) { return rank.started.has_value(); });
}

bool AllEnded(const Attempt& attempt) {
  return std::all_of(attempt.ranks.begin(), attempt.ranks.end(),
                     [](const RankObservation& rank) { return rank.ended.has_value(); });
}

bool AllClean(const Attempt& attempt) {
  // What a machine takes along with it may be the output of ranks that have ended well.
  if (attempt.engine_end == EngineEnd::kNodeLost) return false;
  const bool by_records = std::all_of(attempt.ranks.begin(), attempt.ranks.end(), [](const RankObservation& rank) {
    return rank.ended && rank.ended->clean() && !rank.ended->signalled();
  });
  return by_records || EngineSaysClean(attempt);
}

bool AnyLeft(const Attempt& attempt) {
  return std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                     [](const RankObservation& rank) { return !rank.ended && rank.tree != Tree::kGone; });
}

std::optional<Cause> ObservedCause(const Attempt& attempt) {
  if (const RankObservation* failed = FirstFailed(attempt)) {
    return Cause{EndCause::kRankFailed, RankFailure(*failed, attempt.engine_end)};
  }
  auto engine_failure = EngineFailure(attempt.engine_end, attempt.sight.engine_reason);
  for (const RankObservation& rank : attempt.ranks) {
    if (!rank.ended || !rank.ended->signalled()) continue;
    if (ExplainsTerm(attempt.engine_end)) return Cause{EndCause::kEngine, std::move(engine_failure)};
    return Cause{EndCause::kEvicted, EvictionFailure(rank)};
  }
  if (AllClean(attempt)) return Cause{EndCause::kFinished, std::nullopt};
  if (engine_failure) return Cause{EndCause::kEngine, std::move(engine_failure)};
  const bool over = attempt.owned() && attempt.freed;
  for (const RankObservation& rank : attempt.ranks) {
    if (LostWithoutRecord(rank) || (over && !rank.ended)) return Cause{EndCause::kRankLost, LostFailure(rank)};
  }
  return std::nullopt;
}

bool MayLeave(const Attempt& attempt) {
  const bool fenced = attempt.claim == Claim::kFenced || (attempt.ending && attempt.ending->fence == FenceState::kWon);
  return attempt.ending && attempt.freed && (fenced || attempt.owned());
}

Outcome Judge(const Step& step, const Policy& policy) {
  const Attempt& attempt = *step.attempt;
  if (AllClean(attempt) && attempt.owned()) return Outcome::kSucceeded;
  if (step.stop_requested) return Outcome::kStopped;
  switch (attempt.ending->cause) {
    case EndCause::kFinished:
    case EndCause::kRankFailed:
    case EndCause::kEvicted:
    case EndCause::kRankLost:
    case EndCause::kEngine:
    case EndCause::kStop:
    case EndCause::kTimeLimit:
    case EndCause::kStartTimeout:
    case EndCause::kRejected:
      return JudgeFailure(step, policy);
    case EndCause::kPause:
      return step.pause.any() ? Outcome::kPaused : Outcome::kResumed;
    case EndCause::kWindow:
    case EndCause::kPendingTimeout:
    case EndCause::kRefused:
    case EndCause::kAbsent:
      return step.pause.any() ? Outcome::kPaused : Outcome::kRelaunched;
  }
  return Outcome::kFailed;
}

bool CardsMayExplain(const Attempt& attempt) {
  if (!attempt.ending || !attempt.ending->failure) return false;
  const RankObservation* const failed = FirstFailed(attempt);
  if (failed != nullptr && failed->ended->exit == ExitKind::kNotStarted) return false;
  switch (attempt.ending->failure->kind) {
    case FailureKind::kUserExit:
    case FailureKind::kGpuLost:
      return true;
    case FailureKind::kUserOom:
    case FailureKind::kTimeLimit:
    case FailureKind::kEngineRejected:
    case FailureKind::kImage:
    case FailureKind::kStartTimeout:
    case FailureKind::kNodeLost:
    case FailureKind::kPreempted:
    case FailureKind::kEvicted:
    case FailureKind::kStorage:
    case FailureKind::kDependency:
    case FailureKind::kLost:
      return false;
  }
  return false;
}

Failure FailureOf(const Attempt& attempt) {
  // An engine may say why only after the record of its TERM was read.
  if (attempt.ending && attempt.ending->cause == EndCause::kEvicted && ExplainsTerm(attempt.engine_end)) {
    return *EngineFailure(attempt.engine_end, attempt.sight.engine_reason);
  }
  if (CardsMayExplain(attempt) && !attempt.sight.card_faults.empty()) return CardFailure(attempt);
  if (attempt.ending && attempt.ending->failure) return *attempt.ending->failure;
  if (auto failure = EngineFailure(attempt.engine_end, attempt.sight.engine_reason)) return *std::move(failure);
  return {FailureKind::kLost, "it ended without evidence of how: retry continues from the newest checkpoint"};
}

bool RetryAllowed(const Step& step, const Failure& failure, const Policy& policy) {
  if (!step.ever_ran) return false;
  switch (Traits(failure.kind).budget) {
    case RetryBudget::kNever:
      return false;
    case RetryBudget::kUser:
      return step.user_retries_used < std::min(policy.user_retries, step.spec.user_retries.value_or(INT32_MAX));
    case RetryBudget::kInfrastructure:
      return step.infrastructure_retries_used <
             std::min(policy.infrastructure_retries, step.spec.infrastructure_retries.value_or(INT32_MAX));
  }
  return false;
}

std::string DescribeRankExit(const EndRecord& record) {
  switch (record.exit) {
    case ExitKind::kExited:
      return record.ambiguous && record.code > 128
                 ? fmt::format("exit {} or killed by {}", record.code, SignalName(record.code - 128))
                 : fmt::format("exit {}", record.code);
    case ExitKind::kKilled:
      return fmt::format("killed by {}", SignalName(record.term_signal));
    case ExitKind::kNotStarted:
      return fmt::format("could not start ({})", record.start_error);
  }
  return "no exit record";
}

std::string DescribeExit(const Attempt& attempt) {
  if (attempt.ranks.empty()) return "no exit record";
  // What ended by itself says more than what was signalled because of it, a failure more than a success.
  const auto telling = [](const RankObservation& rank) {
    return !rank.ended ? 0 : FailedByItself(rank) ? 3 : rank.ended->clean() ? 1 : 2;
  };
  const RankObservation* worst = nullptr;
  for (const RankObservation& rank : attempt.ranks) {
    if (rank.ended && (!worst || telling(rank) > telling(*worst))) worst = &rank;
  }
  if (!worst) return "no exit record";
  if (attempt.ranks.size() == 1 || (AllEnded(attempt) && worst->ended->clean())) return DescribeRankExit(*worst->ended);
  return fmt::format("{}: {}", RankName(*worst), DescribeRankExit(*worst->ended));
}

}  // namespace tp::core
