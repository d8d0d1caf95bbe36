#include "api/estimate_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/convert.h"
#include "auth/roles.h"
#include "core/gates.h"

namespace tp::api {
namespace {

// Of one that no forecast speaks of.
plan::NoEstimate WhyLeftOut(const Forecast* forecast, const core::RunWithSteps& run, const core::Step& step) {
  if (!step.hold.shape.empty()) return plan::NoEstimate::kShape;
  if (step.hold.any()) return plan::NoEstimate::kHeld;
  if (core::Dependency(run, step) != core::DependencyState::kMet) return plan::NoEstimate::kDependency;
  // A task whose turn has not come.
  if (run.run.array_limit > 0) return plan::NoEstimate::kDependency;
  return forecast != nullptr && forecast->left_out ? plan::NoEstimate::kBehind : plan::NoEstimate::kUnknown;
}

std::optional<v1::EstimateErrors> ErrorsOf(const Context& context) {
  const std::optional<plan::EstimateErrors> errors = context.forecasts.errors();
  if (!errors) return std::nullopt;
  v1::EstimateErrors to;
  to.set_starts(static_cast<int32_t>(errors->starts));
  *to.mutable_median_off() = ToProto(errors->median_off);
  *to.mutable_p90_off() = ToProto(errors->p90_off);
  *to.mutable_bias() = ToProto(errors->bias);
  return to;
}

}  // namespace

v1::StartEstimate EstimateOf(const Call& call, const Forecast* forecast, const core::RunWithSteps& run,
                             const core::Step& step) {
  plan::StartEstimate estimate;
  const bool known = forecast != nullptr && forecast->estimates.contains(step.ref) && !step.hold.any();
  if (known) {
    estimate = forecast->estimates.at(step.ref);
  } else {
    estimate.why_none = WhyLeftOut(forecast, run, step);
  }
  v1::StartEstimate to;
  if (estimate.starts_at) {
    *to.mutable_starts_at() = ToProto(*estimate.starts_at);
  } else {
    to.set_why_none(plan::WhyNoEstimate(estimate, auth::MayReadNameInQueue(call.caller, estimate.behind_owner)));
  }
  return to;
}

void SetErrors(const Context& context, v1::StartEstimate* to) {
  if (auto errors = ErrorsOf(context)) *to->mutable_so_far() = *std::move(errors);
}

void SetErrors(const Context& context, v1::ListQueueResponse* to) {
  if (auto errors = ErrorsOf(context)) *to->mutable_estimates_so_far() = *std::move(errors);
}

void AddEstimates(const Context& context, const Call& call, const Forecast* forecast, const core::RunWithSteps& run,
                  v1::Run* to) {
  for (v1::Step& shown : *to->mutable_steps()) {
    const core::Step& step = run.steps[static_cast<size_t>(shown.index() - 1)];
    if (step.state != core::JobState::kQueued) continue;
    v1::StartEstimate* estimate = shown.mutable_estimate();
    *estimate = EstimateOf(call, forecast, run, step);
    SetErrors(context, estimate);
  }
}

void WithForecast(Context& context, const std::vector<loop::LiveRun>& runs, Forecasts::Then then) {
  std::optional<absl::Time> queued_by;
  for (const loop::LiveRun& run : runs) {
    for (const core::Step& step : run.run.steps) {
      if (step.state != core::JobState::kQueued) continue;
      queued_by = std::max(step.entered_at, queued_by.value_or(step.entered_at));
    }
  }
  if (!queued_by) return then(nullptr);
  context.forecasts.Get(context, *queued_by, std::move(then));
}

}  // namespace tp::api
