// SystemService of proto/tp/v1/system.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/system.grpc.pb.h"

namespace tp::api {

class SystemService final : public v1::SystemService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit SystemService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* server_context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;
  grpc::ServerUnaryReactor* WhoAmI(grpc::CallbackServerContext* server_context, const v1::WhoAmIRequest* request,
                                   v1::WhoAmIResponse* response) override;
  grpc::ServerUnaryReactor* ListReceivers(grpc::CallbackServerContext* server_context,
                                          const v1::ListReceiversRequest* request,
                                          v1::ListReceiversResponse* response) override;
  grpc::ServerUnaryReactor* ReloadConfiguration(grpc::CallbackServerContext* server_context,
                                                const v1::ReloadConfigurationRequest* request,
                                                v1::ReloadConfigurationResponse* response) override;

  grpc::ServerUnaryReactor* Reconcile(grpc::CallbackServerContext* server_context, const v1::ReconcileRequest* request,
                                      v1::ReconcileResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
