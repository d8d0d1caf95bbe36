// What a run left: its result files and metrics. Handlers of RunService.
#pragma once

#include "api/call.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

absl::Status ListResultFiles(Context& context, const Call& call, const v1::ListResultsRequest& request,
                             v1::ListResultsResponse* response);

grpc::ServerWriteReactor<v1::ReadResultResponse>* StartReadResult(Context& context,
                                                                  grpc::CallbackServerContext* server_context,
                                                                  const v1::ReadResultRequest& request);

absl::Status ReadRunMetrics(Context& context, const Call& call, const v1::ReadMetricsRequest& request,
                            v1::ReadMetricsResponse* response);

}  // namespace tp::api
