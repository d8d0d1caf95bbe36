#include "cli/upload.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/blob_sender.h"
#include "cli/hash_files.h"
#include "cli/rpc_status.h"
#include "cli/stat_cache.h"

namespace tp::cli {
namespace {

constexpr absl::Duration kCommitTimeout = absl::Minutes(5);
constexpr size_t kEntriesPerMessage = 500;
// A blob can be missing at the commit only where tpd lost it meanwhile.
constexpr int kMaxRounds = 3;

absl::Status CheckLimits(Client& client, const FileTree& tree) {
  TP_ASSIGN_OR_RETURN(const auto answer,
                      client.Call(&v1::SnapshotService::Stub::GetSnapshotLimits, v1::GetSnapshotLimitsRequest()));
  snapshot::Limits limits;
  limits.max_bytes = answer.max_bytes();
  limits.max_entries = answer.max_entries();
  return snapshot::CheckSize(tree.entries, limits);
}

absl::StatusOr<bool> IsKnown(Client& client, const std::string& snapshot_id) {
  v1::GetSnapshotRequest request;
  request.set_snapshot_id(snapshot_id);
  absl::Status status = client.Call(&v1::SnapshotService::Stub::GetSnapshot, request).status();
  if (absl::IsNotFound(status)) return false;
  if (!status.ok()) return status;
  return true;
}

v1::EntryKind KindOf(const snapshot::Entry& entry) {
  switch (entry.kind) {
    case snapshot::EntryKind::kFile:
      return v1::ENTRY_KIND_FILE;
    case snapshot::EntryKind::kDirectory:
      return v1::ENTRY_KIND_DIRECTORY;
    case snapshot::EntryKind::kSymlink:
      return v1::ENTRY_KIND_SYMLINK;
  }
  return v1::ENTRY_KIND_UNSPECIFIED;
}

void AddEntry(const snapshot::Entry& entry, v1::CommitManifestRequest* message) {
  v1::ManifestEntry& added = *message->add_entries();
  added.set_path(entry.path);
  added.set_kind(KindOf(entry));
  added.set_executable(entry.executable);
  added.set_sha256(entry.sha256);
  added.set_bytes(entry.bytes);
  added.set_link_target(entry.link_target);
}

grpc::Status SendManifest(Client& client, grpc::ClientContext& call, const std::string& request_id,
                          const snapshot::Manifest& manifest) {
  v1::CommitManifestResponse response;
  const auto writer = client.stub<v1::SnapshotService::Stub>().CommitManifest(&call, &response);
  v1::CommitManifestRequest message;
  message.set_request_id(request_id);
  bool open = true;
  for (const snapshot::Entry& entry : manifest.entries()) {
    AddEntry(entry, &message);
    if (static_cast<size_t>(message.entries_size()) < kEntriesPerMessage) continue;
    open = writer->Write(message);
    if (!open) break;
    message.Clear();
  }
  if (open && writer->Write(message)) writer->WritesDone();
  return writer->Finish();
}

absl::Status Commit(Client& client, const snapshot::Manifest& manifest) {
  const std::string request_id = NewRequestId();
  return client.CallWithRetries(
      kCommitTimeout, [&](grpc::ClientContext& call) { return SendManifest(client, call, request_id, manifest); });
}

absl::Status Send(Client& client, const FileTree& tree, const snapshot::Manifest& manifest, Progress& progress,
                  UploadReport* report) {
  for (int round = 1;; ++round) {
    TP_ASSIGN_OR_RETURN(const SendCost sent, SendMissing(client, tree, progress));
    report->blobs_sent += sent.blobs;
    report->blob_bytes_sent += sent.bytes;
    const absl::Status status = Commit(client, manifest);
    if (DetailOf(status).reason() != "BLOBS_MISSING" || round == kMaxRounds) return status;
  }
}

}  // namespace

absl::StatusOr<UploadReport> UploadDirectory(Client& client, const std::string& directory, Progress& progress) {
  TP_ASSIGN_OR_RETURN(const std::string path, ResolveDirectory(directory));
  StatCache cache = StatCache::Open(path);
  TP_ASSIGN_OR_RETURN(FileTree tree, ScanTree(path));
  if (RecallDigests(cache, tree) > 0) TP_RETURN_IF_ERROR(CheckLimits(client, tree));
  TP_ASSIGN_OR_RETURN(const HashCost hashed, HashFiles(tree, progress));
  if (hashed.files_read > 0) RememberDigests(tree, cache);
  TP_ASSIGN_OR_RETURN(const snapshot::Manifest manifest, snapshot::Manifest::Make(tree.entries));
  UploadReport report{.snapshot_id = manifest.id(), .stats = tree.stats, .files_read = hashed.files_read};
  TP_ASSIGN_OR_RETURN(const bool known, IsKnown(client, manifest.id()));
  if (!known) TP_RETURN_IF_ERROR(Send(client, tree, manifest, progress, &report));
  return report;
}

absl::StatusOr<FileTree> ScanForUpload(Client& client, const std::string& directory) {
  TP_ASSIGN_OR_RETURN(const std::string path, ResolveDirectory(directory));
  TP_ASSIGN_OR_RETURN(FileTree tree, ScanTree(path));
  TP_RETURN_IF_ERROR(CheckLimits(client, tree));
  return tree;
}

}  // namespace tp::cli
