#include "core/run.h"

#include <algorithm>
#include <array>

#include "core/gates.h"

namespace tp::core {
namespace {

constexpr std::array<std::string_view, kRunWordCount> kRunWords = {
    "QUEUED", "SUBMITTED", "PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "STOPPED", "PARTIAL"};

// The most advanced first.
constexpr std::array<JobState, 4> kLive = {JobState::kRunning, JobState::kPending, JobState::kSubmitted,
                                           JobState::kQueued};

bool Cleanup(const Step& step) { return step.spec.after && step.spec.after->when != AfterWhen::kSuccess; }

// A cleanup step that was not needed says nothing about the run.
bool NotNeeded(const Step& step) {
  return Cleanup(step) && step.state == JobState::kStopped && step.failure &&
         step.failure->kind == FailureKind::kDependency;
}

bool WaitsForItsRun(const std::vector<Step>& steps, const Step& step) {
  if (step.state != JobState::kQueued || !step.spec.after) return false;
  return !IsTerminal(steps[static_cast<size_t>(step.spec.after->step)].state);
}

bool Any(const std::vector<Step>& steps, JobState state) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.state == state; });
}

RunWord TerminalWord(const std::vector<Step>& steps) {
  const bool all_good = std::all_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.state == JobState::kSucceeded || NotNeeded(step);
  });
  if (all_good) return RunWord::kSucceeded;
  bool stopped_root = false;
  for (const Step& step : steps) {
    if (step.spec.after) continue;
    if (step.state == JobState::kFailed) return RunWord::kFailed;
    stopped_root = stopped_root || step.state == JobState::kStopped;
  }
  return stopped_root ? RunWord::kStopped : RunWord::kPartial;
}

}  // namespace

std::string Run::id() const { return RunName(slug, n); }

std::string_view Name(RunWord word) { return kRunWords[static_cast<size_t>(word)]; }

std::optional<RunWord> ParseRunWord(std::string_view name) {
  const auto found = std::find(kRunWords.begin(), kRunWords.end(), name);
  if (found == kRunWords.end()) return std::nullopt;
  return static_cast<RunWord>(found - kRunWords.begin());
}

bool IsTerminal(RunWord word) { return word > RunWord::kPaused; }

RunWord RollUp(const std::vector<Step>& steps) {
  const bool others_live = std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return !IsTerminal(step.state) && !WaitsForItsRun(steps, step);
  });
  for (JobState state : kLive) {
    for (const Step& step : steps) {
      if (step.state == state && !(others_live && WaitsForItsRun(steps, step))) return static_cast<RunWord>(state);
    }
  }
  if (Any(steps, JobState::kPaused)) return RunWord::kPaused;
  return TerminalWord(steps);
}

}  // namespace tp::core
