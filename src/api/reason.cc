#include "api/reason.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace tp::api {
namespace {

std::string GateReason(const std::vector<core::GateVerdict>& gates) {
  std::string reason = fmt::format("{}: {}", core::Name(gates[0].gate), gates[0].sentence);
  if (gates.size() > 1) reason += fmt::format(" (and {} more)", gates.size() - 1);
  return reason;
}

std::string PendingReason(const core::Step& step) {
  if (!step.attempt) return "waits for its engine";
  const core::Attempt& attempt = *step.attempt;
  if (!attempt.sight.engine_reason.empty()) return attempt.sight.engine_reason;
  const auto up = std::count_if(attempt.ranks.begin(), attempt.ranks.end(),
                                [](const RankObservation& rank) { return rank.started.has_value(); });
  size_t all = 0;
  for (const PoolPlacement& pool : attempt.placement) all += pool.ranks.size();
  return fmt::format("{} of {} ranks have started on {}", up, all, attempt.shape.backend);
}

std::string PausedReason(const core::PauseHolders& pause) {
  std::string by;
  for (const auto& [held, who] :
       {std::pair{pause.owner, std::string_view("its owner")}, std::pair{pause.admin, std::string_view("an admin")},
        std::pair{pause.window, std::string_view("its window")}}) {
    if (held) by += fmt::format("{}{}", by.empty() ? "" : " and ", who);
  }
  return by.empty() ? "paused; tp resume continues it" : fmt::format("paused by {}; tp resume continues it", by);
}

std::string FailedReason(const core::Step& step) {
  if (step.failure && !step.failure->sentence.empty()) return step.failure->sentence;
  if (step.failure) return std::string(core::Name(step.failure->kind));
  return step.exit.empty() ? "failed" : step.exit;
}

bool HasWord(const core::Step& step, core::RunWord word) { return core::Name(step.state) == core::Name(word); }

}  // namespace

std::string StepReason(const core::Step& step, const std::vector<core::GateVerdict>& gates) {
  if (!gates.empty()) return GateReason(gates);  // a quarantine holds in any state
  switch (step.state) {
    case core::JobState::kQueued:
      return "no gate is closed: it is about to launch";
    case core::JobState::kSubmitted:
      return "being handed to its engine";
    case core::JobState::kPending:
      return PendingReason(step);
    case core::JobState::kRunning:
      return step.attempt ? step.attempt->sight.engine_reason : "";
    case core::JobState::kPaused:
      return PausedReason(step.pause);
    case core::JobState::kSucceeded:
      return "";
    case core::JobState::kFailed:
      return FailedReason(step);
    case core::JobState::kStopped:
      return step.failure ? step.failure->sentence : "";
  }
  return "";
}

const core::Step& SpeakingStep(const core::RunWithSteps& run) {
  const core::RunWord word = core::RollUp(run.steps);
  // A run is PARTIAL because a step did not succeed.
  const auto speaks = [word](const core::Step& step) {
    return word == core::RunWord::kPartial ? step.state != core::JobState::kSucceeded : HasWord(step, word);
  };
  const auto found = std::find_if(run.steps.begin(), run.steps.end(), speaks);
  return found == run.steps.end() ? run.steps.front() : *found;
}

}  // namespace tp::api
