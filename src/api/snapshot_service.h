// SnapshotService of proto/tp/v1/snapshot.proto.
#pragma once

#include <atomic>

#include "api/call.h"
#include "tp/v1/snapshot.grpc.pb.h"

namespace tp::api {

class SnapshotService final : public v1::SnapshotService::CallbackService {
 public:
  // `context` outlives the service and its calls.
  explicit SnapshotService(Context& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetSnapshot(grpc::CallbackServerContext* server_context,
                                        const v1::GetSnapshotRequest* request,
                                        v1::GetSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* GetSnapshotLimits(grpc::CallbackServerContext* server_context,
                                              const v1::GetSnapshotLimitsRequest* request,
                                              v1::GetSnapshotLimitsResponse* response) override;
  grpc::ServerUnaryReactor* FindMissingBlobs(grpc::CallbackServerContext* server_context,
                                             const v1::FindMissingBlobsRequest* request,
                                             v1::FindMissingBlobsResponse* response) override;
  grpc::ServerReadReactor<v1::PutBlobsRequest>* PutBlobs(grpc::CallbackServerContext* server_context,
                                                         v1::PutBlobsResponse* response) override;
  grpc::ServerReadReactor<v1::CommitManifestRequest>* CommitManifest(grpc::CallbackServerContext* server_context,
                                                                     v1::CommitManifestResponse* response) override;

 private:
  Context& context_;
  std::atomic<int> commits_ = 0;  // under way
};

}  // namespace tp::api
