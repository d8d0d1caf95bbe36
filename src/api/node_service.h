// NodeService of proto/tp/v1/node.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/node.grpc.pb.h"

namespace tp::api {

class NodeService final : public v1::NodeService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit NodeService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* server_context, const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* MarkNode(grpc::CallbackServerContext* server_context, const v1::MarkNodeRequest* request,
                                     v1::MarkNodeResponse* response) override;
  grpc::ServerUnaryReactor* ClearNode(grpc::CallbackServerContext* server_context, const v1::ClearNodeRequest* request,
                                      v1::ClearNodeResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
