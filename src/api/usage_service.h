// UsageService of proto/tp/v1/usage.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/usage.grpc.pb.h"

namespace tp::api {

class UsageService final : public v1::UsageService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit UsageService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* QueryUsage(grpc::CallbackServerContext* server_context,
                                       const v1::QueryUsageRequest* request, v1::QueryUsageResponse* response) override;
  grpc::ServerUnaryReactor* ListIntervals(grpc::CallbackServerContext* server_context,
                                          const v1::ListIntervalsRequest* request,
                                          v1::ListIntervalsResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
