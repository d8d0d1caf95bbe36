#include "api/snapshot_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/mutation.h"
#include "api/request.h"

namespace tp::api {
namespace {

constexpr std::string_view kUploadSnapshot = "/tp.v1.SnapshotService/UploadSnapshot";
constexpr std::string_view kGetSnapshot = "/tp.v1.SnapshotService/GetSnapshot";

// Reads one message at a time and handles each on a worker thread; gRPC's flow control holds the client
// back meanwhile. Deletes itself.
class UploadReactor final : public grpc::ServerReadReactor<v1::UploadSnapshotRequest> {
 public:
  UploadReactor(Context& context, grpc::CallbackServerContext* server_context, v1::UploadSnapshotResponse* response)
      : context_(context), server_context_(server_context), response_(response) {
    StartRead(&part_);
  }

 private:
  void OnReadDone(bool ok) override {
    context_.files.Post([this, ok] { ok ? OnPart() : OnEnd(); });
  }
  void OnDone() override { delete this; }

  void OnPart() {
    absl::Status status = call_ ? OnData() : OnHeader();
    if (!status.ok()) return Answer(status);
    if (row_) return Answer(absl::OkStatus());  // kept already: the rest is not needed
    StartRead(&part_);
  }

  absl::Status OnHeader() {
    TP_ASSIGN_OR_RETURN(call_, Authenticate(context_, *server_context_, kUploadSnapshot));
    if (!part_.has_header()) return FieldError("header", "the first message of an upload is its header");
    header_ = part_.header();
    TP_RETURN_IF_ERROR(CheckRequestId(header_.request_id()));
    TP_RETURN_IF_ERROR(CheckSha256("header.sha256", header_.sha256()));
    if (header_.bytes() <= 0 || header_.bytes() > context_.facts.max_snapshot_bytes) {
      return FieldError("header.bytes", "a snapshot has 1 to {} bytes, this one {}: leave data out by .tpignore",
                        context_.facts.max_snapshot_bytes, header_.bytes());
    }
    body_sha256_ = BodySha256(call_->method, header_);
    TP_RETURN_IF_ERROR(FindAnswered(context_, *call_, header_.request_id(), body_sha256_).status());
    TP_ASSIGN_OR_RETURN(row_, context_.reader.FindSnapshot(header_.sha256()));
    if (row_) return absl::OkStatus();
    TP_RETURN_IF_ERROR(context_.may_take_work());
    TP_ASSIGN_OR_RETURN(upload_, context_.snapshots.Begin(header_.sha256(), header_.bytes()));
    return absl::OkStatus();
  }

  absl::Status OnData() {
    if (part_.part_case() != v1::UploadSnapshotRequest::kData) {
      return FieldError("data", "after its header an upload has data only");
    }
    received_ += static_cast<int64_t>(part_.data().size());
    if (received_ > header_.bytes()) {
      return FieldError("data", "the upload is longer than the {} bytes that its header announced", header_.bytes());
    }
    return upload_->Write(part_.data());
  }

  void OnEnd() {
    if (!upload_) return Answer(FieldError("header", "the upload ended before its header"));
    if (server_context_->IsCancelled()) return Answer(absl::CancelledError("the upload was broken off"));
    auto stored = upload_->Finish();
    if (!stored.ok()) return Answer(stored.status());
    row_ = store::SnapshotRow{.id = stored->id,
                              .owner = call_->caller.user,
                              .bytes = stored->bytes,
                              .files = stored->files,
                              .created_at = context_.now()};
    loop::Command command{.who = call_->principal(),
                          .request_id = header_.request_id(),
                          .method = call_->method,
                          .body_sha256 = body_sha256_,
                          .action = loop::AddSnapshot{.snapshot = *row_}};
    context_.loop.Post(std::move(command),
                       [this](const absl::StatusOr<loop::Answer>& answer) { Answer(answer.status()); });
  }

  void Answer(const absl::Status& status) {
    if (status.ok()) {
      response_->set_snapshot_id(row_->id);
      response_->set_files(row_->files);
    }
    Finish(ToGrpc(status));
  }

  Context& context_;
  grpc::CallbackServerContext* const server_context_;
  v1::UploadSnapshotResponse* const response_;
  v1::UploadSnapshotRequest part_;
  std::optional<Call> call_;
  v1::SnapshotHeader header_;
  std::string body_sha256_;
  std::unique_ptr<SnapshotUpload> upload_;
  int64_t received_ = 0;
  std::optional<store::SnapshotRow> row_;
};

absl::Status Get(Context& context, const v1::GetSnapshotRequest& request, v1::GetSnapshotResponse* response) {
  TP_RETURN_IF_ERROR(CheckSha256("snapshot_id", request.snapshot_id()));
  TP_ASSIGN_OR_RETURN(const auto row, context.reader.FindSnapshot(request.snapshot_id()));
  if (!row) {
    return WithReason(NotFound("snapshot {} is not on this server", request.snapshot_id()), "SNAPSHOT_NOT_FOUND");
  }
  response->set_snapshot_id(row->id);
  response->set_bytes(row->bytes);
  response->set_files(row->files);
  return absl::OkStatus();
}

}  // namespace

grpc::ServerReadReactor<v1::UploadSnapshotRequest>* SnapshotService::UploadSnapshot(
    grpc::CallbackServerContext* server_context, v1::UploadSnapshotResponse* response) {
  return new UploadReactor(context_, server_context, response);
}

grpc::ServerUnaryReactor* SnapshotService::GetSnapshot(grpc::CallbackServerContext* server_context,
                                                       const v1::GetSnapshotRequest* request,
                                                       v1::GetSnapshotResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kGetSnapshot,
                      [=, this](const Call& /*call*/) { return Get(context_, *request, response); });
}

}  // namespace tp::api
