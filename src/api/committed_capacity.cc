#include "api/committed_capacity.h"

#include "base/status.h"
#include "store/each_run.h"

namespace tp::api {

absl::StatusOr<core::Capacity> CommittedCapacity(store::Reader& reader, const core::Registry& registry) {
  core::Capacity capacity(registry);
  store::RunFilter live;
  live.words = {core::RunWord::kSubmitted, core::RunWord::kPending, core::RunWord::kRunning};
  TP_RETURN_IF_ERROR(store::EachRun(reader, live, [&capacity](const core::RunWithSteps& run) {
    for (const core::Step& step : run.steps) {
      if (step.attempt) capacity.Take(step.attempt->placement);
    }
    return absl::OkStatus();
  }));
  return capacity;
}

}  // namespace tp::api
