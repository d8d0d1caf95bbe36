// RegistryService of proto/tp/v1/registry.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/registry.grpc.pb.h"

namespace tp::api {

class RegistryService final : public v1::RegistryService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit RegistryService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListSeries(grpc::CallbackServerContext* server_context,
                                       const v1::ListSeriesRequest* request, v1::ListSeriesResponse* response) override;
  grpc::ServerUnaryReactor* ListProfiles(grpc::CallbackServerContext* server_context,
                                         const v1::ListProfilesRequest* request,
                                         v1::ListProfilesResponse* response) override;
  grpc::ServerUnaryReactor* ListExecutors(grpc::CallbackServerContext* server_context,
                                          const v1::ListExecutorsRequest* request,
                                          v1::ListExecutorsResponse* response) override;
  grpc::ServerUnaryReactor* GetRegistryStatus(grpc::CallbackServerContext* server_context,
                                              const v1::GetRegistryStatusRequest* request,
                                              v1::GetRegistryStatusResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
