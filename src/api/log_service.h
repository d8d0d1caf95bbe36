// LogService of proto/tp/v1/log.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/log.grpc.pb.h"

namespace tp::api {

class LogService final : public v1::LogService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit LogService(Context& context) : context_(context) {}

  grpc::ServerWriteReactor<v1::ReadLogResponse>* ReadLog(grpc::CallbackServerContext* server_context,
                                                         const v1::ReadLogRequest* request) override;

 private:
  Context& context_;
};

}  // namespace tp::api
