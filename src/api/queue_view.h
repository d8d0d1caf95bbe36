// ListQueue and ExplainRun of RunService: what waits, why, and behind whom. Names of other people's runs
// are for operators and admins, everyone else sees their sizes.
#pragma once

#include "api/call.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// Both read the store on the calling thread and answer from a thread of context.calls.
void ListQueue(Context& context, const Call& call, const v1::ListQueueRequest& request, v1::ListQueueResponse* response,
               const Done& done);
void ExplainRun(Context& context, const Call& call, const v1::ExplainRunRequest& request,
                v1::ExplainRunResponse* response, const Done& done);

}  // namespace tp::api
