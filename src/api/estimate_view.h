// Estimates of starts as the API answers them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/call.h"
#include "api/forecast.h"
#include "core/run.h"
#include "loop/commands.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// Of a queued step. Names of runs ahead are shown to those who may read them. `forecast` may be null.
v1::StartEstimate EstimateOf(const Call& call, const Forecast* forecast, const core::RunWithSteps& run,
                             const core::Step& step);

// To all queued steps of the run, with how far off such estimates were.
void AddEstimates(const Context& context, const Call& call, const Forecast* forecast, const core::RunWithSteps& run,
                  v1::Run* to);

// Nothing where no start was estimated yet.
void SetErrors(const Context& context, v1::StartEstimate* to);
void SetErrors(const Context& context, v1::ListQueueResponse* to);

// `then` gets a forecast for all that is queued in `runs`, or null where nothing is or none can be made. Called
// at once or on a thread of context.calls, where this is to be called, too.
void WithForecast(Context& context, const std::vector<loop::LiveRun>& runs, Forecasts::Then then);

}  // namespace tp::api
