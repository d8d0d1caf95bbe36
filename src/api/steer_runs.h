// SteerRuns: one change of many runs, decided by the loop in one turn.
#pragma once

#include "api/call.h"
#include "core/run.h"
#include "loop/commands.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// With the runs that it came after, as stored. Blocking: reads the store.
loop::RetryRun RetryOf(Context& context, core::RunWithSteps stored);

void SteerRuns(Context& context, const Call& call, const v1::SteerRunsRequest& request, v1::SteerRunsResponse* response,
               const Done& done);

}  // namespace tp::api
