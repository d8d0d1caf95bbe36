// QuotaService of proto/tp/v1/quota.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/quota.grpc.pb.h"

namespace tp::api {

class QuotaService final : public v1::QuotaService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit QuotaService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetStanding(grpc::CallbackServerContext* server_context,
                                        const v1::GetStandingRequest* request,
                                        v1::GetStandingResponse* response) override;
  grpc::ServerUnaryReactor* ListQuotas(grpc::CallbackServerContext* server_context,
                                       const v1::ListQuotasRequest* request, v1::ListQuotasResponse* response) override;
  grpc::ServerUnaryReactor* SetQuota(grpc::CallbackServerContext* server_context, const v1::SetQuotaRequest* request,
                                     v1::SetQuotaResponse* response) override;
  grpc::ServerUnaryReactor* RemoveQuotaRule(grpc::CallbackServerContext* server_context,
                                            const v1::RemoveQuotaRuleRequest* request,
                                            v1::RemoveQuotaRuleResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
