#include "mutants.h"

#include <algorithm>
#include <stdexcept>

#include "core/judge.h"

namespace tp::sim {
namespace {

using core::Change;
using core::EventKind;
using core::JobState;
using core::Rule;
using core::Table;

constexpr std::string_view kGoneClean = "gone; every rank 0, unsignalled";
constexpr std::string_view kGoneStopped = "gone; stop was asked";
constexpr std::string_view kGonePaused = "gone; paused";
constexpr std::string_view kGoneResumed = "gone; paused, resumed since";
constexpr std::string_view kGoneRelaunched = "gone; never ran";
constexpr std::string_view kGoneRetried = "gone; failed, budget left";
constexpr std::string_view kGoneFailed = "gone; failed";

// The product's own row, for changes that do something more or less than it does.
const Rule& Product(EventKind on, std::string_view when) {
  for (const Rule& rule : core::ProductTable()) {
    if (rule.on == on && rule.when == when) return rule;
  }
  throw std::logic_error("the table has no row: " + std::string(when));
}

// Every row of that name; a mutant that changes nothing is a mistake.
template <typename Change>
void ForRows(Table& table, EventKind on, std::string_view when, Change change) {
  bool found = false;
  for (Rule& rule : table) {
    if (rule.on != on || rule.when != when) continue;
    change(rule);
    found = true;
  }
  if (!found) throw std::logic_error("the table has no row: " + std::string(when));
}

void ReplaceAct(Table& table, EventKind on, std::string_view when, void (*act)(Change&)) {
  ForRows(table, on, when, [&](Rule& rule) { rule.act = act; });
}

void ReplaceGuard(Table& table, EventKind on, std::string_view when, bool (*guard)(const Change&)) {
  ForRows(table, on, when, [&](Rule& rule) { rule.guard = guard; });
}

bool Never(const Change&) { return false; }

// --- Table ----------------------------------------------------------------------------------------

Mutant MeterOpenedAtPending() {
  return {"meter opened when the cards were granted", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, "every rank has a start record", [](Change& c) {
              Product(EventKind::kObserved, "every rank has a start record").act(c);
              c.step.attempt->meter->opened.unix_us = absl::ToUnixMicros(c.step.attempt->created_at);
            });
          }};
}

Mutant MeterClosedAtVerification() {
  return {"meter closed at the verification", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, kGoneClean, [](Change& c) {
              if (c.step.attempt->meter) c.step.attempt->meter->closed_unix_us = absl::ToUnixMicros(c.now);
              Product(EventKind::kObserved, kGoneClean).act(c);
            });
          }};
}

Mutant MeterNotSettled() {
  return {"a retried attempt is not billed", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, kGoneRetried, [](Change& c) {
              Product(EventKind::kObserved, kGoneRetried).act(c);
              std::erase_if(c.effects, [](const core::Effect& effect) {
                return std::holds_alternative<core::SettleMeter>(effect);
              });
            });
          }};
}

Mutant TerminalOverwritten() {
  return {"a stop turns FAILED into STOPPED", [](Table& table) {
            table.insert(table.begin(), Rule{{JobState::kFailed},
                                             EventKind::kStop,
                                             "planted",
                                             [](const Change&) { return true; },
                                             JobState::kStopped,
                                             "",
                                             [](Change& c) { c.step.failure.reset(); }});
          }};
}

Mutant SucceededRunsAgain() {
  return {"a retry runs a job that succeeded", [](Table& table) {
            ForRows(table, EventKind::kRetry, "", [](Rule& rule) {
              if (!rule.from.has(JobState::kSucceeded)) return;
              for (const Rule& retry : core::ProductTable()) {
                if (retry.on == EventKind::kRetry && retry.to == JobState::kQueued) rule = retry;
              }
              rule.from = {JobState::kSucceeded};
            });
          }};
}

Mutant StopLostAgainstRetry() {
  return {"a retry beats a stop", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGoneStopped, Never);
            ReplaceGuard(table, EventKind::kObserved, kGoneFailed, [](const Change& c) {
              return core::MayLeave(*c.step.attempt) && !core::AllClean(*c.step.attempt) && c.step.stop_requested;
            });
            ForRows(table, EventKind::kObserved, kGoneFailed, [](Rule& rule) {
              rule.to = JobState::kQueued;
              rule.act = [](Change& c) {
                Product(EventKind::kObserved, kGoneResumed).act(c);
                c.step.stop_requested = false;
                c.step.pause = {};
              };
            });
          }};
}

Mutant StopForgotten() {
  return {"a stop of a queued job is acknowledged and forgotten", [](Table& table) {
            for (Rule& rule : table) {
              if (rule.on != EventKind::kStop || !rule.from.has(JobState::kQueued)) continue;
              rule.to.reset();
              rule.act = [](Change&) {};
            }
          }};
}

Mutant ExitZeroAfterTermSucceeds() {
  return {"exit 0 after TERM is a success", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGoneClean, [](const Change& c) {
              const auto& ranks = c.step.attempt->ranks;
              if (Product(EventKind::kObserved, kGoneClean).guard(c)) return true;
              return core::MayLeave(*c.step.attempt) && core::AllStarted(*c.step.attempt) &&
                     std::all_of(ranks.begin(), ranks.end(),
                                 [](const RankObservation& rank) { return rank.ended && rank.ended->clean(); });
            });
          }};
}

Mutant OneOfManySucceeds() {
  return {"rank 0 speaks for all", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGoneClean, [](const Change& c) {
              if (Product(EventKind::kObserved, kGoneClean).guard(c)) return true;
              const RankObservation& first = c.step.attempt->ranks.front();
              return core::MayLeave(*c.step.attempt) && first.ended && first.ended->clean() &&
                     !first.ended->signalled();
            });
          }};
}

Mutant FailedRankLeavesOthers() {
  return {"one failed rank leaves the others running", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, "the evidence names an end", [](Change& c) {
              const size_t effects = c.effects.size();
              Product(EventKind::kObserved, "the evidence names an end").act(c);
              c.effects.resize(std::min(effects, c.effects.size()), core::LaunchAttempt{});
              c.step.attempt->ending->sent = core::SignalSent::kNone;
              c.step.attempt->ending->escalate_at.reset();
            });
          }};
}

// Over by its records, whatever is left of it.
bool Recorded(const Change& c) {
  const core::Attempt& attempt = *c.step.attempt;
  return attempt.ending && attempt.owned() && core::AllStarted(attempt) &&
         std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                     [](const RankObservation& rank) { return rank.ended.has_value(); });
}

Mutant CardsReleasedEarly() {
  return {"cards are released at a rank's record, not when all is gone", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGoneStopped, [](const Change& c) {
              const bool early = Recorded(c) && c.step.stop_requested && !core::AllClean(*c.step.attempt);
              return early || Product(EventKind::kObserved, kGoneStopped).guard(c);
            });
          }};
}

Mutant PauseHidesFailure() {
  return {"a pause after the failure hides it", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGonePaused, [](const Change& c) {
              return core::MayLeave(*c.step.attempt) && c.step.pause.any() && !core::AllClean(*c.step.attempt) &&
                     !c.step.stop_requested;
            });
          }};
}

Mutant PausedJobFails() {
  return {"a paused job whose ranks exit non-zero is FAILED", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, kGonePaused, Never);
            ReplaceGuard(table, EventKind::kObserved, kGoneFailed, [](const Change& c) {
              return core::MayLeave(*c.step.attempt) && !core::AllClean(*c.step.attempt) && !c.step.stop_requested;
            });
          }};
}

Mutant ResumeCountsAsRetry() {
  return {"retry_count rises on a resume", [](Table& table) {
            ReplaceAct(table, EventKind::kResume, "no holder remains", [](Change& c) {
              Product(EventKind::kResume, "no holder remains").act(c);
              c.step.retry_count += 1;
            });
          }};
}

Mutant RelaunchCountsAsRetry() {
  return {"retry_count rises on a relaunch", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, kGoneRelaunched, [](Change& c) {
              Product(EventKind::kObserved, kGoneRelaunched).act(c);
              c.step.retry_count += 1;
            });
          }};
}

Mutant AttemptNumberReused() {
  return {"a relaunch takes the same attempt number again", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, kGoneRelaunched, [](Change& c) {
              Product(EventKind::kObserved, kGoneRelaunched).act(c);
              c.step.attempts -= 1;
            });
          }};
}

Mutant FenceSkipped() {
  return {"a withdrawal does not fence", [](Table& table) {
            ReplaceAct(table, EventKind::kStop, "no rank is known to own it", [](Change& c) {
              Product(EventKind::kStop, "no rank is known to own it").act(c);
              c.effects.clear();
              c.effects.emplace_back(core::RemoveAttempt{});
              c.step.attempt->ending->fence = core::FenceState::kWon;
            });
          }};
}

Mutant FenceLostIgnored() {
  return {"a lost fence counts as won", [](Table& table) {
            for (Rule& rule : table) {
              if (rule.on != EventKind::kFenceAnswered || !rule.when.starts_with("lost")) continue;
              rule.act = [](Change& c) { Product(EventKind::kFenceAnswered, "won").act(c); };
            }
          }};
}

Mutant OwnerLiftsAdmin() {
  return {"an owner's resume lifts an admin's pause", [](Table& table) {
            ReplaceGuard(table, EventKind::kResume, "another holder remains", Never);
            ReplaceAct(table, EventKind::kResume, "no holder remains", [](Change& c) { c.step.pause = {}; });
          }};
}

Mutant PauseOfEndingJobForgotten() {
  return {"a pause of a job that is ending is acknowledged and forgotten",
          [](Table& table) { ReplaceAct(table, EventKind::kPause, "it is ending", [](Change&) {}); }};
}

Mutant KillAtOnce() {
  return {"KILL does not wait for stop_grace", [](Table& table) {
            ReplaceAct(table, EventKind::kStop, "a rank owns it", [](Change& c) {
              Product(EventKind::kStop, "a rank owns it").act(c);
              if (c.step.attempt->ending->escalate_at)
                c.step.attempt->ending->escalate_at = c.now + absl::Milliseconds(1);
            });
          }};
}

Mutant KillNeverComes() {
  return {"TERM is not followed by KILL", [](Table& table) {
            ReplaceAct(table, EventKind::kTimer, "stop_grace is over",
                       [](Change& c) { c.step.attempt->ending->escalate_at.reset(); });
          }};
}

Mutant WindowPausesForGood() {
  Mutant mutant = {"a window that opens leaves its jobs paused", [](Table& table) {
                     ReplaceGuard(table, EventKind::kResume, "no holder remains", [](const Change& c) {
                       const auto& resume = std::get<core::ResumeRequested>(c.event);
                       return resume.by != core::Holder::kWindow;
                     });
                     ReplaceAct(table, EventKind::kPause, "a rank owns it", [](Change& c) {
                       Product(EventKind::kPause, "a rank owns it").act(c);
                       c.step.pause.window = false;
                       c.step.pause.owner = true;
                     });
                   }};
  mutant.simulator = Simulator::kStep;
  return mutant;
}

Mutant NotSeenIsGone() {
  return {"a look that sees nothing ends what is ending", [](Table& table) {
            ReplaceGuard(table, EventKind::kObserved, "unknown", [](const Change& c) {
              const auto& observed = std::get<core::Observed>(c.event);
              return std::holds_alternative<Unknown>(observed.observation) && !c.step.attempt->ending;
            });
            ForRows(table, EventKind::kObserved, kGoneStopped, [](Rule& rule) {
              rule.guard = [](const Change& c) {
                const bool blind = std::holds_alternative<Unknown>(std::get<core::Observed>(c.event).observation);
                return (blind && c.step.stop_requested) || Product(EventKind::kObserved, kGoneStopped).guard(c);
              };
            });
          }};
}

Mutant BrokenCardForgotten() {
  return {"a card that broke under a job is not kept with it",
          [](Table& table) { ReplaceAct(table, EventKind::kCardsLooked, "one of its own is broken", [](Change&) {}); }};
}

Mutant MendedCardBlamed() {
  return {"a card that was mended before the job began is blamed for its end", [](Table& table) {
            ReplaceAct(table, EventKind::kCardPutBack, "one of its own was broken, and no rank has begun",
                       [](Change&) {});
          }};
}

Mutant MendedCardForgotten() {
  return {"a card that broke under a job is forgotten when it is mended", [](Table& table) {
            ForRows(table, EventKind::kCardPutBack, "one of its own was broken, and no rank has begun", [](Rule& rule) {
              rule.from = {JobState::kSubmitted, JobState::kPending, JobState::kRunning};
              rule.guard = [](const Change& c) { return !c.step.attempt->sight.card_faults.empty(); };
              rule.act = [](Change& c) { c.step.attempt->sight.card_faults.clear(); };
            });
          }};
}

Mutant EndNamedBeforeTheLook() {
  return {"a failure is named before the look at its cards has come", [](Table& table) {
            ReplaceAct(table, EventKind::kObserved, "the evidence names an end", [](Change& c) {
              Product(EventKind::kObserved, "the evidence names an end").act(c);
              c.step.attempt->sight.look_asked.reset();
            });
          }};
}

// --- Policy ---------------------------------------------------------------------------------------

Mutant OneAbsentIsEnough() {
  return {"one Absent is enough", nullptr, [](Defects& defects) {
            defects.change_policy = [](core::Policy& policy) {
              policy.absent_confirmations = 1;
              policy.absent_grace = absl::ZeroDuration();
            };
          }};
}

Mutant BudgetIgnored() {
  return {"the retry budget is one too large", nullptr, [](Defects& defects) {
            defects.change_policy = [](core::Policy& policy) { policy.infrastructure_retries += 1; };
          }};
}

Mutant BudgetWithheld() {
  return {"a retry that is due does not come", nullptr, [](Defects& defects) {
            defects.change_policy = [](core::Policy& policy) { policy.infrastructure_retries = 0; };
          }};
}

// --- Seams ----------------------------------------------------------------------------------------

Mutant Seam(std::string name, bool Defects::*flag) {
  return {std::move(name), nullptr, [flag](Defects& defects) { defects.*flag = true; }};
}

}  // namespace

std::vector<Mutant> AllMutants() {
  return {
      Seam("no write-ahead: effects leave before their commit", &Defects::effects_before_commit),
      Seam("answers leave before their commit", &Defects::replies_at_once),
      Seam("an acknowledged commit is not durable", &Defects::commits_lost),
      Seam("what is owed is not sent again at a restart", &Defects::outbox_forgotten),
      Seam("a launch is sent again at a restart", &Defects::launch_repeated),
      Seam("ranks do not look at the claim", &Defects::claims_ignored),
      Seam("quotas are not in force after a restart", &Defects::quotas_forgotten),
      Seam("drained nodes take jobs after a restart", &Defects::marks_forgotten),
      Seam("a request id is not remembered", &Defects::requests_forgotten),
      Seam("a clock that is set moves no deadline along", &Defects::clock_set_ignored),
      Seam("at a restart nobody looks for late records any more", &Defects::corrections_forgotten),
      Seam("what is to be corrected is not durable", &Defects::corrections_not_durable),
      Seam("a correction stays owed and is applied twice", &Defects::corrections_kept),
      OneAbsentIsEnough(),
      Seam("Unknown is taken for Absent", &Defects::unknown_is_absent),
      BudgetIgnored(),
      BudgetWithheld(),
      MeterOpenedAtPending(),
      MeterClosedAtVerification(),
      MeterNotSettled(),
      TerminalOverwritten(),
      SucceededRunsAgain(),
      StopLostAgainstRetry(),
      StopForgotten(),
      ExitZeroAfterTermSucceeds(),
      OneOfManySucceeds(),
      FailedRankLeavesOthers(),
      CardsReleasedEarly(),
      PauseHidesFailure(),
      PausedJobFails(),
      ResumeCountsAsRetry(),
      RelaunchCountsAsRetry(),
      AttemptNumberReused(),
      FenceSkipped(),
      FenceLostIgnored(),
      OwnerLiftsAdmin(),
      PauseOfEndingJobForgotten(),
      KillAtOnce(),
      KillNeverComes(),
      WindowPausesForGood(),
      NotSeenIsGone(),
      BrokenCardForgotten(),
      MendedCardBlamed(),
      MendedCardForgotten(),
      EndNamedBeforeTheLook(),
  };
}

}  // namespace tp::sim
