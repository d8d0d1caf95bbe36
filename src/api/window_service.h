// WindowService of proto/tp/v1/window.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/window.grpc.pb.h"

namespace tp::api {

class WindowService final : public v1::WindowService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit WindowService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListWindows(grpc::CallbackServerContext* server_context,
                                        const v1::ListWindowsRequest* request,
                                        v1::ListWindowsResponse* response) override;
  grpc::ServerUnaryReactor* HoldWindowOpen(grpc::CallbackServerContext* server_context,
                                           const v1::HoldWindowOpenRequest* request,
                                           v1::HoldWindowOpenResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
