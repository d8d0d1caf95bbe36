// RunService of proto/tp/v1/run.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {

class RunService final : public v1::RunService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit RunService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* SubmitRun(grpc::CallbackServerContext* server_context, const v1::SubmitRunRequest* request,
                                      v1::SubmitRunResponse* response) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* server_context, const v1::GetRunRequest* request,
                                   v1::GetRunResponse* response) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* server_context, const v1::ListRunsRequest* request,
                                     v1::ListRunsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchRunResponse>* WatchRun(grpc::CallbackServerContext* server_context,
                                                           const v1::WatchRunRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(grpc::CallbackServerContext* server_context,
                                                                 const v1::WatchEventsRequest* request) override;
  grpc::ServerUnaryReactor* StopRun(grpc::CallbackServerContext* server_context, const v1::StopRunRequest* request,
                                    v1::StopRunResponse* response) override;
  grpc::ServerUnaryReactor* PauseRun(grpc::CallbackServerContext* server_context, const v1::PauseRunRequest* request,
                                     v1::PauseRunResponse* response) override;
  grpc::ServerUnaryReactor* ResumeRun(grpc::CallbackServerContext* server_context, const v1::ResumeRunRequest* request,
                                      v1::ResumeRunResponse* response) override;
  grpc::ServerUnaryReactor* RetryRun(grpc::CallbackServerContext* server_context, const v1::RetryRunRequest* request,
                                     v1::RetryRunResponse* response) override;
  grpc::ServerUnaryReactor* SteerRuns(grpc::CallbackServerContext* server_context, const v1::SteerRunsRequest* request,
                                      v1::SteerRunsResponse* response) override;
  grpc::ServerUnaryReactor* UpdateRun(grpc::CallbackServerContext* server_context, const v1::UpdateRunRequest* request,
                                      v1::UpdateRunResponse* response) override;
  grpc::ServerUnaryReactor* CloneRun(grpc::CallbackServerContext* server_context, const v1::CloneRunRequest* request,
                                     v1::CloneRunResponse* response) override;
  grpc::ServerUnaryReactor* RemoveRun(grpc::CallbackServerContext* server_context, const v1::RemoveRunRequest* request,
                                      v1::RemoveRunResponse* response) override;
  grpc::ServerUnaryReactor* ExplainRun(grpc::CallbackServerContext* server_context,
                                       const v1::ExplainRunRequest* request, v1::ExplainRunResponse* response) override;
  grpc::ServerUnaryReactor* ListQueue(grpc::CallbackServerContext* server_context, const v1::ListQueueRequest* request,
                                      v1::ListQueueResponse* response) override;
  grpc::ServerUnaryReactor* ListRunEvents(grpc::CallbackServerContext* server_context,
                                          const v1::ListRunEventsRequest* request,
                                          v1::ListRunEventsResponse* response) override;
  grpc::ServerUnaryReactor* ListResults(grpc::CallbackServerContext* server_context,
                                        const v1::ListResultsRequest* request,
                                        v1::ListResultsResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadResultResponse>* ReadResult(grpc::CallbackServerContext* server_context,
                                                               const v1::ReadResultRequest* request) override;
  grpc::ServerUnaryReactor* ReadMetrics(grpc::CallbackServerContext* server_context,
                                        const v1::ReadMetricsRequest* request,
                                        v1::ReadMetricsResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
