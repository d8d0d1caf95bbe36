#include "api/committed_capacity.h"

#include <optional>

#include "base/status.h"

namespace tp::api {
namespace {

constexpr int kRunsPerRead = 500;

}  // namespace

absl::StatusOr<core::Capacity> CommittedCapacity(store::Reader& reader, const core::Registry& registry) {
  core::Capacity capacity(registry);
  store::RunFilter live;
  live.words = {core::RunWord::kSubmitted, core::RunWord::kPending, core::RunWord::kRunning};
  std::optional<int64_t> before;
  do {
    TP_ASSIGN_OR_RETURN(const store::RunPage page, reader.ListRuns(live, before, kRunsPerRead));
    for (const core::RunWithSteps& run : page.runs) {
      for (const core::Step& step : run.steps) {
        if (step.attempt) capacity.Take(step.attempt->placement);
      }
    }
    before = page.next_before;
  } while (before);
  return capacity;
}

}  // namespace tp::api
