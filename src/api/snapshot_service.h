// SnapshotService of proto/tp/v1/snapshot.proto.
#pragma once

#include "api/call.h"
#include "tp/v1/snapshot.grpc.pb.h"

namespace tp::api {

class SnapshotService final : public v1::SnapshotService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit SnapshotService(Context& context) : context_(context) {}

  grpc::ServerReadReactor<v1::UploadSnapshotRequest>* UploadSnapshot(grpc::CallbackServerContext* server_context,
                                                                     v1::UploadSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* GetSnapshot(grpc::CallbackServerContext* server_context,
                                        const v1::GetSnapshotRequest* request,
                                        v1::GetSnapshotResponse* response) override;

 private:
  Context& context_;
};

}  // namespace tp::api
