#include "api/snapshot_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/client_stream.h"
#include "api/mutation.h"
#include "api/request.h"
#include "auth/digest.h"
#include "snapshot/store.h"

namespace tp::api {
namespace {

constexpr std::string_view kGetSnapshot = "/tp.v1.SnapshotService/GetSnapshot";
constexpr std::string_view kGetSnapshotLimits = "/tp.v1.SnapshotService/GetSnapshotLimits";
constexpr std::string_view kFindMissingBlobs = "/tp.v1.SnapshotService/FindMissingBlobs";
constexpr std::string_view kPutBlobs = "/tp.v1.SnapshotService/PutBlobs";
constexpr std::string_view kCommitManifest = "/tp.v1.SnapshotService/CommitManifest";

constexpr int kMaxDigests = 10'000;
// Each may hold snapshot::kMaxManifestBytes in memory.
constexpr int kMaxCommits = 16;

absl::Status Get(Context& context, const v1::GetSnapshotRequest& request, v1::GetSnapshotResponse* response) {
  TP_RETURN_IF_ERROR(CheckSha256("snapshot_id", request.snapshot_id()));
  const auto info = context.snapshots.Touch(request.snapshot_id());
  if (!info) {
    return WithReason(NotFound("snapshot {} is not on this server", request.snapshot_id()), "SNAPSHOT_NOT_FOUND");
  }
  response->set_snapshot_id(info->id);
  response->set_bytes(info->bytes);
  response->set_files(info->files);
  return absl::OkStatus();
}

absl::Status FindMissing(Context& context, const Call& call, const v1::FindMissingBlobsRequest& request,
                         v1::FindMissingBlobsResponse* response) {
  if (request.sha256_size() > kMaxDigests) {
    return FieldError("sha256", "{} digests in one call, at most {} are taken: make several calls",
                      request.sha256_size(), kMaxDigests);
  }
  for (const std::string& sha256 : request.sha256()) TP_RETURN_IF_ERROR(CheckSha256("sha256", sha256));
  const std::vector<std::string> digests(request.sha256().begin(), request.sha256().end());
  for (const snapshot::MissingBlob& blob : context.snapshots.FindMissing(call.caller.user, digests)) {
    auto* missing = response->add_missing();
    missing->set_sha256(blob.sha256);
    missing->set_received_bytes(blob.received_bytes);
  }
  return absl::OkStatus();
}

// What the client has to do is ask again.
absl::Status BlobsMissing(absl::Status status) {
  return absl::IsFailedPrecondition(status) ? WithReason(std::move(status), "BLOBS_MISSING") : status;
}

// --- PutBlobs -------------------------------------------------------------------------------------

class PutBlobsStream final : public ClientStream<v1::PutBlobsRequest> {
 public:
  PutBlobsStream(Context& context, grpc::CallbackServerContext* server_context, v1::PutBlobsResponse* response)
      : ClientStream(context, server_context, kPutBlobs), response_(response) {}

 private:
  absl::Status OnMessage(v1::PutBlobsRequest& message) override {
    if (!upload_) {
      TP_RETURN_IF_ERROR(context().may_take_work());
      upload_ = context().snapshots.BeginUpload(call().caller.user);
    }
    if (message.has_header()) {
      const v1::BlobHeader& header = message.header();
      TP_RETURN_IF_ERROR(CheckSha256("header.sha256", header.sha256()));
      TP_RETURN_IF_ERROR(BlobsMissing(upload_->Begin(header.sha256(), header.bytes(), header.offset())));
    }
    return upload_->Append(message.data());
  }

  void OnEnd() override {
    if (!upload_) return Answer(absl::OkStatus());
    const auto counts = upload_->Finish();
    upload_.reset();
    if (counts.ok()) {
      response_->set_blobs(counts->blobs);
      response_->set_bytes(counts->bytes);
    }
    Answer(counts.status());
  }

  void OnBroken() override { upload_.reset(); }

  v1::PutBlobsResponse* const response_;
  std::unique_ptr<snapshot::BlobUpload> upload_;
};

// --- CommitManifest -------------------------------------------------------------------------------

absl::StatusOr<snapshot::EntryKind> KindOf(const v1::ManifestEntry& entry) {
  switch (entry.kind()) {
    case v1::ENTRY_KIND_FILE:
      return snapshot::EntryKind::kFile;
    case v1::ENTRY_KIND_DIRECTORY:
      return snapshot::EntryKind::kDirectory;
    case v1::ENTRY_KIND_SYMLINK:
      return snapshot::EntryKind::kSymlink;
    default:  // an open enum
      return FieldError("entries.kind", "a snapshot holds files, directories and links, nothing of kind {}",
                        static_cast<int>(entry.kind()));
  }
}

absl::StatusOr<snapshot::Entry> EntryOf(v1::ManifestEntry& message) {
  TP_ASSIGN_OR_RETURN(const snapshot::EntryKind kind, KindOf(message));
  snapshot::Entry entry;
  entry.kind = kind;
  entry.path = std::move(*message.mutable_path());
  if (kind == snapshot::EntryKind::kFile) {
    entry.executable = message.executable();
    entry.sha256 = std::move(*message.mutable_sha256());
    entry.bytes = message.bytes();
  }
  if (kind == snapshot::EntryKind::kSymlink) entry.link_target = std::move(*message.mutable_link_target());
  return entry;
}

class CommitStream final : public ClientStream<v1::CommitManifestRequest> {
 public:
  CommitStream(Context& context, grpc::CallbackServerContext* server_context, v1::CommitManifestResponse* response,
               std::atomic<int>& commits)
      : ClientStream(context, server_context, kCommitManifest), response_(response), commits_(commits) {
    ++commits_;
  }
  ~CommitStream() override { --commits_; }

 private:
  absl::Status OnMessage(v1::CommitManifestRequest& message) override {
    if (commits_ > kMaxCommits) return Unavailable("{} snapshots are being committed: try again", kMaxCommits);
    if (!begun_) {
      TP_RETURN_IF_ERROR(CheckRequestId(message.request_id()));
      TP_RETURN_IF_ERROR(context().may_take_work());
      request_id_ = message.request_id();
      begun_ = true;
    } else if (!message.request_id().empty()) {
      return FieldError("request_id", "only the first message of a commit has the request id");
    }
    return Take(message);
  }

  // Held against the limits as it grows, not only once it is whole.
  absl::Status Take(v1::CommitManifestRequest& message) {
    received_bytes_ += message.ByteSizeLong();
    if (received_bytes_ > 2 * snapshot::kMaxManifestBytes) {
      return FieldError("entries", "the manifest is longer than {} bytes", 2 * snapshot::kMaxManifestBytes);
    }
    for (v1::ManifestEntry& entry : *message.mutable_entries()) {
      TP_ASSIGN_OR_RETURN(snapshot::Entry taken, EntryOf(entry));
      entries_.push_back(std::move(taken));
    }
    return snapshot::CheckCount(entries_.size(), context().snapshots.limits());
  }

  void OnEnd() override {
    if (const absl::Status status = Commit(); !status.ok()) Answer(status);
  }

  // OK: Answer was called or follows.
  absl::Status Commit() {
    if (!begun_) return FieldError("request_id", "a commit has at least one message, with the request id");
    TP_ASSIGN_OR_RETURN(const snapshot::Manifest manifest, snapshot::Manifest::Make(std::move(entries_)));
    const std::string body_sha256 = auth::Sha256Hex(fmt::format("{}\n{}", call().method, manifest.id()));
    TP_ASSIGN_OR_RETURN(const auto answered, FindAnswered(context(), call(), request_id_, body_sha256));
    const std::string& owner = call().caller.user;
    const absl::Time uncollected_since = context().now() - context().snapshots.limits().grace;
    TP_ASSIGN_OR_RETURN(const auto charged, context().reader.SnapshotsOf(owner, uncollected_since));
    auto info = context().snapshots.Commit(owner, manifest, charged);
    if (!info.ok()) return BlobsMissing(info.status());
    response_->set_snapshot_id(info->id);
    response_->set_files(info->files);
    response_->set_bytes(info->bytes);
    if (answered) {
      Answer(absl::OkStatus());
    } else {
      EnterInBooks(*info, body_sha256);
    }
    return absl::OkStatus();
  }

  void EnterInBooks(const snapshot::Info& info, const std::string& body_sha256) {
    store::SnapshotRow row{.id = info.id,
                           .owner = call().caller.user,
                           .bytes = info.bytes,
                           .files = info.files,
                           .created_at = context().now()};
    context().loop.Post(MakeCommand(call(), request_id_, body_sha256, loop::AddSnapshot{.snapshot = std::move(row)}),
                        [this](const absl::StatusOr<loop::Answer>& answer) { Answer(answer.status()); });
  }

  v1::CommitManifestResponse* const response_;
  std::atomic<int>& commits_;
  bool begun_ = false;
  std::string request_id_;
  size_t received_bytes_ = 0;
  std::vector<snapshot::Entry> entries_;
};

}  // namespace

grpc::ServerUnaryReactor* SnapshotService::GetSnapshot(grpc::CallbackServerContext* server_context,
                                                       const v1::GetSnapshotRequest* request,
                                                       v1::GetSnapshotResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kGetSnapshot,
                      [=, this](const Call& /*call*/) { return Get(context_, *request, response); });
}

grpc::ServerUnaryReactor* SnapshotService::GetSnapshotLimits(grpc::CallbackServerContext* server_context,
                                                             const v1::GetSnapshotLimitsRequest* /*request*/,
                                                             v1::GetSnapshotLimitsResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kGetSnapshotLimits, [=, this](const Call& /*call*/) {
    response->set_max_bytes(context_.snapshots.limits().max_bytes);
    response->set_max_entries(context_.snapshots.limits().max_entries);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* SnapshotService::FindMissingBlobs(grpc::CallbackServerContext* server_context,
                                                            const v1::FindMissingBlobsRequest* request,
                                                            v1::FindMissingBlobsResponse* response) {
  return RunUnarySync(context_, context_.files, server_context, kFindMissingBlobs,
                      [=, this](const Call& call) { return FindMissing(context_, call, *request, response); });
}

grpc::ServerReadReactor<v1::PutBlobsRequest>* SnapshotService::PutBlobs(grpc::CallbackServerContext* server_context,
                                                                        v1::PutBlobsResponse* response) {
  return (new PutBlobsStream(context_, server_context, response))->Start();
}

grpc::ServerReadReactor<v1::CommitManifestRequest>* SnapshotService::CommitManifest(
    grpc::CallbackServerContext* server_context, v1::CommitManifestResponse* response) {
  return (new CommitStream(context_, server_context, response, commits_))->Start();
}

}  // namespace tp::api
