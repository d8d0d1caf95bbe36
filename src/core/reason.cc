#include "core/reason.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace tp::core {
namespace {

std::string GateReason(const std::vector<GateVerdict>& gates) {
  std::string reason = fmt::format("{}: {}", Name(gates[0].gate), gates[0].sentence);
  if (gates.size() > 1) reason += fmt::format(" (and {} more)", gates.size() - 1);
  return reason;
}

// Why the attempt is taken back, or why that does not get on. Empty: nothing is known.
std::string WithdrawalReason(const Step& step) {
  const Attempt& attempt = *step.attempt;
  if (!attempt.ending) return "";
  return attempt.ending->failure ? attempt.ending->failure->sentence : step.backoff_reason;
}

std::string SubmittedReason(const Step& step) {
  std::string reason = step.attempt ? WithdrawalReason(step) : "";
  return reason.empty() ? "being handed to its engine" : reason;
}

std::string PendingReason(const Step& step) {
  if (!step.attempt) return "waits for its engine";
  const Attempt& attempt = *step.attempt;
  if (!attempt.sight.engine_reason.empty()) return attempt.sight.engine_reason;
  if (std::string reason = WithdrawalReason(step); !reason.empty()) return reason;
  const auto up = std::count_if(attempt.ranks.begin(), attempt.ranks.end(),
                                [](const RankObservation& rank) { return rank.started.has_value(); });
  size_t all = 0;
  for (const PoolPlacement& pool : attempt.placement) all += pool.ranks.size();
  return fmt::format("{} of {} ranks have started on {}", up, all, attempt.shape.backend);
}

std::string PausedReason(const PauseHolders& pause) {
  std::string by;
  for (const auto& [held, who] :
       {std::pair{pause.owner, std::string_view("its owner")}, std::pair{pause.admin, std::string_view("an admin")},
        std::pair{pause.window, std::string_view("its window")}}) {
    if (held) by += fmt::format("{}{}", by.empty() ? "" : " and ", who);
  }
  return by.empty() ? "paused; tp resume continues it" : fmt::format("paused by {}; tp resume continues it", by);
}

std::string FailedReason(const Step& step) {
  if (step.failure && !step.failure->sentence.empty()) return step.failure->sentence;
  if (step.failure) return std::string(Name(step.failure->kind));
  return step.exit.empty() ? "failed" : step.exit;
}

bool HasWord(const Step& step, RunWord word) { return Name(step.state) == Name(word); }

}  // namespace

std::string StepReason(const Step& step, const std::vector<GateVerdict>& gates) {
  if (!gates.empty()) return GateReason(gates);  // a quarantine holds in any state
  switch (step.state) {
    case JobState::kQueued:
      return "no gate is closed: it is about to launch";
    case JobState::kSubmitted:
      return SubmittedReason(step);
    case JobState::kPending:
      return PendingReason(step);
    case JobState::kRunning:
      return step.attempt ? step.attempt->sight.engine_reason : "";
    case JobState::kPaused:
      return PausedReason(step.pause);
    case JobState::kSucceeded:
      return "";
    case JobState::kFailed:
      return FailedReason(step);
    case JobState::kStopped:
      return step.failure ? step.failure->sentence : "";
  }
  return "";
}

const Step& SpeakingStep(const std::vector<Step>& steps) {
  const RunWord word = RollUp(steps);
  // A run is PARTIAL because a step did not succeed.
  const auto speaks = [word](const Step& step) {
    return word == RunWord::kPartial ? step.state != JobState::kSucceeded : HasWord(step, word);
  };
  const auto found = std::find_if(steps.begin(), steps.end(), speaks);
  return found == steps.end() ? steps.front() : *found;
}

}  // namespace tp::core
