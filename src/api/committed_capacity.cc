#include "api/committed_capacity.h"

#include <functional>

#include "base/status.h"
#include "core/card_check.h"
#include "store/each_run.h"

namespace tp::api {
namespace {

absl::Status EachLiveAttempt(store::Reader& reader, const std::function<void(const core::Attempt&)>& visit) {
  store::RunFilter live;
  live.words = {core::RunWord::kSubmitted, core::RunWord::kPending, core::RunWord::kRunning};
  return store::EachRun(reader, live, [&visit](const core::RunWithSteps& run) {
    for (const core::Step& step : run.steps) {
      if (step.attempt) visit(*step.attempt);
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<core::Capacity> CommittedCapacity(store::Reader& reader, const core::Registry& registry) {
  core::Capacity capacity(registry);
  TP_RETURN_IF_ERROR(
      EachLiveAttempt(reader, [&capacity](const core::Attempt& attempt) { capacity.Take(attempt.placement); }));
  return capacity;
}

absl::StatusOr<std::vector<std::string>> CommittedCardFaults(store::Reader& reader, const core::Registry& registry) {
  core::CardCheck check(registry);
  TP_RETURN_IF_ERROR(EachLiveAttempt(reader, [&check](const core::Attempt& attempt) { check.Add(attempt); }));
  return check.faults();
}

}  // namespace tp::api
