#include "store/waiting.h"

#include <algorithm>

#include "core/array.h"
#include "core/gates.h"

namespace tp::store {

std::vector<QueuedStepRow> WaitingStepsOf(const core::RunWithSteps& run) {
  std::vector<QueuedStepRow> rows;
  for (const core::Step& step : run.steps) {
    if (step.state != core::JobState::kQueued || core::Dependency(run, step) != core::DependencyState::kMet) continue;
    rows.push_back({.ref = step.ref,
                    .owner = run.run.owner,
                    .priority = run.run.priority,
                    .submitted_at = run.run.created_at,
                    .held = step.hold.any(),
                    .profiles = step.spec.profiles});
  }
  if (run.run.array_limit > 0) LeaveTurns(rows, {{run.run.n, run.run.array_limit - core::LiveTasks(run)}});
  return rows;
}

void LeaveTurns(std::vector<QueuedStepRow>& rows, std::map<int64_t, int64_t> rooms) {
  const auto too_early = [&rooms](const QueuedStepRow& row) {
    const auto room = rooms.find(row.ref.run);
    return room != rooms.end() && !row.held && room->second-- <= 0;
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), too_early), rows.end());
}

}  // namespace tp::store
