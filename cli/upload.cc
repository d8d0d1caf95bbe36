#include "cli/upload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/file_tree.h"
#include "cli/progress.h"
#include "cli/snapshot_pack.h"

namespace tp::cli {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
// The slowest link that an upload is given time for.
constexpr int64_t kSlowestBytesPerSecond = 128 * 1024;
constexpr absl::Duration kUploadBase = absl::Minutes(1);

absl::StatusOr<bool> IsKnown(Client& client, const std::string& snapshot_id) {
  v1::GetSnapshotRequest request;
  request.set_snapshot_id(snapshot_id);
  absl::Status status = client.Call(&v1::SnapshotService::Stub::GetSnapshot, request).status();
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

// One try at the whole stream.
class UploadTry {
 public:
  UploadTry(const PackedSnapshot& packed, Progress& progress) : packed_(packed), progress_(progress) {}

  grpc::Status Run(Client& client, grpc::ClientContext& call, const std::string& request_id,
                   v1::UploadSnapshotResponse& response) {
    const auto writer = client.stub<v1::SnapshotService::Stub>().UploadSnapshot(&call, &response);
    const grpc::Status sent = Send(*writer, request_id);
    if (!sent.ok()) call.TryCancel();
    const grpc::Status answer = writer->Finish();
    return sent.ok() ? answer : sent;
  }

 private:
  // A stream that the server has ended is no error here: its reason comes with the answer.
  grpc::Status Send(grpc::ClientWriter<v1::UploadSnapshotRequest>& writer, const std::string& request_id) {
    v1::UploadSnapshotRequest message;
    message.mutable_header()->set_request_id(request_id);
    message.mutable_header()->set_sha256(packed_.sha256);
    message.mutable_header()->set_bytes(packed_.archive_bytes);
    bool open = writer.Write(message);
    int64_t offset = 0;
    while (open && offset < packed_.archive_bytes) {
      std::string& data = *message.mutable_data();
      const ssize_t got = ReadChunk(data, offset);
      if (got <= 0) return Unreadable();
      offset += got;
      open = writer.Write(message);
      progress_.Update("uploading", offset, packed_.archive_bytes);
    }
    writer.WritesDone();
    return grpc::Status::OK;
  }

  ssize_t ReadChunk(std::string& data, int64_t offset) const {
    data.resize(kChunkBytes);
    const ssize_t got = ::pread(packed_.archive.get(), data.data(), data.size(), offset);
    data.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return got;
  }

  static grpc::Status Unreadable() {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            fmt::format("cannot read the packed snapshot: {}", std::strerror(errno))};
  }

  const PackedSnapshot& packed_;
  Progress& progress_;
};

absl::StatusOr<std::string> Upload(Client& client, const PackedSnapshot& packed, Progress& progress) {
  const std::string request_id = NewRequestId();
  const absl::Duration timeout = kUploadBase + absl::Seconds(packed.archive_bytes / kSlowestBytesPerSecond);
  v1::UploadSnapshotResponse response;
  TP_RETURN_IF_ERROR(client.CallWithRetries(timeout, [&](grpc::ClientContext& call) {
    return UploadTry(packed, progress).Run(client, call, request_id, response);
  }));
  return response.snapshot_id();
}

}  // namespace

absl::StatusOr<std::string> UploadDirectory(const Context& context, Client& client, const std::string& directory) {
  Progress progress(!context.globals.quiet);
  TP_ASSIGN_OR_RETURN(const FileTree tree, ScanTree(directory, kMaxSnapshotBytes));
  TP_ASSIGN_OR_RETURN(const PackedSnapshot packed, PackTree(tree, [&](int64_t done_bytes, int64_t total_bytes) {
                        progress.Update("packing", done_bytes, total_bytes);
                      }));
  TP_ASSIGN_OR_RETURN(const bool known, IsKnown(client, packed.sha256));
  if (known) return packed.sha256;
  return Upload(client, packed, progress);
}

}  // namespace tp::cli
