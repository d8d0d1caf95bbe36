#include "cli/blob_sender.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/container/flat_hash_map.h"
#include "base/printable.h"
#include "base/status.h"
#include "cli/parallel.h"
#include "cli/rpc_status.h"

namespace tp::cli {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr size_t kDigestsPerCall = 10'000;
constexpr size_t kStreams = 4;
// The slowest link that an upload is given time for.
constexpr int64_t kSlowestBytesPerSecond = 128 * 1024;
constexpr absl::Duration kUploadBase = absl::Minutes(1);

struct Blob {
  std::string sha256;
  size_t entry = 0;            // of the tree, one that has this content
  int64_t received_bytes = 0;  // the server has so much
};

class Sender {
 public:
  Sender(Client& client, const FileTree& tree) : client_(client), tree_(tree) {}

  absl::Status Run(Progress& progress) {
    std::vector<Blob> blobs = AllBlobs();
    TP_RETURN_IF_ERROR(KeepMissing(&blobs));
    const std::vector<std::vector<Blob>> shares = Share(std::move(blobs));
    return RunInParallel(
        static_cast<int>(shares.size()), [&](int worker) { return SendShare(shares[static_cast<size_t>(worker)]); },
        [&] { progress.Update("uploading", sent_bytes_, wanted_bytes_); });
  }

  SendCost cost() const { return {.blobs = sent_blobs_, .bytes = sent_bytes_}; }

 private:
  const snapshot::Entry& EntryOf(const Blob& blob) const { return tree_.entries[blob.entry]; }

  std::vector<Blob> AllBlobs() const {
    absl::flat_hash_map<std::string_view, size_t> first_with;
    std::vector<Blob> blobs;
    for (size_t i = 0; i < tree_.entries.size(); ++i) {
      const snapshot::Entry& entry = tree_.entries[i];
      if (entry.kind != snapshot::EntryKind::kFile || !first_with.emplace(entry.sha256, i).second) continue;
      blobs.push_back({.sha256 = entry.sha256, .entry = i, .received_bytes = 0});
    }
    return blobs;
  }

  // Asks anew, so that what arrived meanwhile is not sent again.
  absl::Status KeepMissing(std::vector<Blob>* blobs) const {
    absl::flat_hash_map<std::string, int64_t> missing;
    for (size_t first = 0; first < blobs->size(); first += kDigestsPerCall) {
      v1::FindMissingBlobsRequest request;
      const size_t last = std::min(first + kDigestsPerCall, blobs->size());
      for (size_t i = first; i < last; ++i) request.add_sha256((*blobs)[i].sha256);
      TP_ASSIGN_OR_RETURN(const auto response, client_.Call(&v1::SnapshotService::Stub::FindMissingBlobs, request));
      for (const auto& blob : response.missing()) missing[blob.sha256()] = blob.received_bytes();
    }
    std::erase_if(*blobs, [&](const Blob& blob) { return !missing.contains(blob.sha256); });
    // More than the file has is another file's beginning: from the start, then.
    for (Blob& blob : *blobs) {
      const int64_t received = missing[blob.sha256];
      blob.received_bytes = received <= EntryOf(blob).bytes ? received : 0;
    }
    return absl::OkStatus();
  }

  // The largest first, each to the stream that has the least to do.
  std::vector<std::vector<Blob>> Share(std::vector<Blob> blobs) {
    std::sort(blobs.begin(), blobs.end(),
              [this](const Blob& a, const Blob& b) { return EntryOf(a).bytes > EntryOf(b).bytes; });
    std::vector<std::vector<Blob>> shares(std::min(kStreams, blobs.size()));
    std::vector<int64_t> loads(shares.size());
    for (Blob& blob : blobs) {
      const auto least = std::min_element(loads.begin(), loads.end()) - loads.begin();
      const int64_t bytes = EntryOf(blob).bytes - blob.received_bytes;
      wanted_bytes_ += bytes;
      loads[static_cast<size_t>(least)] += bytes + 1;  // so that empty files are spread too
      shares[static_cast<size_t>(least)].push_back(std::move(blob));
    }
    return shares;
  }

  absl::Status SendShare(std::vector<Blob> blobs) {
    int64_t bytes = 0;
    for (const Blob& blob : blobs) bytes += EntryOf(blob).bytes;
    bool again = false;
    absl::Status unreadable;
    const absl::Status sent =
        client_.CallWithRetries(kUploadBase + absl::Seconds(bytes / kSlowestBytesPerSecond), [&](auto& call) {
          if (again) unreadable = KeepMissing(&blobs);
          again = true;
          return unreadable.ok() ? SendStream(call, blobs, &unreadable) : grpc::Status::OK;
        });
    return unreadable.ok() ? sent : unreadable;
  }

  // A stream that the server has ended is no error of the writer's: the reason comes with the answer.
  grpc::Status SendStream(grpc::ClientContext& call, const std::vector<Blob>& blobs, absl::Status* unreadable) {
    v1::PutBlobsResponse response;
    const auto writer = client_.stub<v1::SnapshotService::Stub>().PutBlobs(&call, &response);
    bool open = true;
    for (const Blob& blob : blobs) {
      if (!open) break;
      *unreadable = SendBlob(blob, *writer, &open);
      if (!unreadable->ok()) {
        call.TryCancel();
        break;
      }
    }
    if (open) writer->WritesDone();
    const grpc::Status answer = writer->Finish();
    const bool ask_again = DetailOf(FromGrpc(answer)).reason() == "BLOBS_MISSING";
    return ask_again ? grpc::Status(grpc::StatusCode::UNAVAILABLE, answer.error_message()) : answer;
  }

  absl::Status SendBlob(const Blob& blob, grpc::ClientWriter<v1::PutBlobsRequest>& writer, bool* open) {
    const snapshot::Entry& entry = EntryOf(blob);
    const UniqueFd fd(::openat(tree_.root.get(), entry.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return InvalidArgument("{}: {}", Quoted(entry.path), std::strerror(errno));
    v1::PutBlobsRequest message;
    message.mutable_header()->set_sha256(blob.sha256);
    message.mutable_header()->set_bytes(entry.bytes);
    message.mutable_header()->set_offset(blob.received_bytes);
    int64_t offset = blob.received_bytes;
    do {
      TP_RETURN_IF_ERROR(ReadChunk(fd.get(), entry, offset, message.mutable_data()));
      *open = writer.Write(message);
      if (!*open) return absl::OkStatus();
      offset += static_cast<int64_t>(message.data().size());
      sent_bytes_ += static_cast<int64_t>(message.data().size());
      message.clear_header();
    } while (offset < entry.bytes);
    ++sent_blobs_;
    return CheckUnchanged(fd.get(), blob);
  }

  static absl::Status ReadChunk(int fd, const snapshot::Entry& entry, int64_t offset, std::string* data) {
    data->resize(std::min(kChunkBytes, static_cast<size_t>(entry.bytes - offset)));
    if (data->empty()) return absl::OkStatus();
    const ssize_t got = ::pread(fd, data->data(), data->size(), offset);
    if (got < 0) return InvalidArgument("{}: {}", Quoted(entry.path), std::strerror(errno));
    if (got == 0) return InvalidArgument("{} became shorter while it was sent; submit again", Quoted(entry.path));
    data->resize(static_cast<size_t>(got));
    return absl::OkStatus();
  }

  absl::Status CheckUnchanged(int fd, const Blob& blob) const {
    struct stat about {};
    if (::fstat(fd, &about) == 0 && StampOf(about) == tree_.stamps[blob.entry]) return absl::OkStatus();
    return InvalidArgument("{} changed while it was sent; submit again", Quoted(EntryOf(blob).path));
  }

  Client& client_;
  const FileTree& tree_;
  int64_t wanted_bytes_ = 0;
  std::atomic<int64_t> sent_blobs_ = 0;
  std::atomic<int64_t> sent_bytes_ = 0;
};

}  // namespace

absl::StatusOr<SendCost> SendMissing(Client& client, const FileTree& tree, Progress& progress) {
  Sender sender(client, tree);
  TP_RETURN_IF_ERROR(sender.Run(progress));
  return sender.cost();
}

}  // namespace tp::cli
