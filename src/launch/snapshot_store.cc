#include "launch/snapshot_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "base/status.h"

namespace tp::launch {
namespace {

constexpr std::string_view kFolder = ".snapshots";
constexpr std::string_view kUploadPrefix = ".upload.";

std::string FolderPath(std::string_view storage_root) { return fmt::format("{}/{}", storage_root, kFolder); }

// An archive of the largest tree allowed: each entry has a header of at most a few blocks.
int64_t MaxArchiveBytes(const SnapshotLimits& limits) { return limits.max_bytes + limits.max_entries * 4096; }

absl::Status RemoveUploads(const Directory& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.path.c_str()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", folder.path);
  while (const dirent* entry = readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with(kUploadPrefix)) TP_RETURN_IF_ERROR(RemoveTree(folder, name));
  }
  return absl::OkStatus();
}

}  // namespace

std::string SnapshotPath(std::string_view storage_root, std::string_view id) {
  return fmt::format("{}/{}/{}.tar", storage_root, kFolder, id);
}

bool IsSnapshotId(std::string_view id) {
  return id.size() == 64 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

SnapshotWriter::SnapshotWriter(std::string storage_root, std::string path, UniqueFd fd, const SnapshotLimits& limits)
    : storage_root_(std::move(storage_root)), path_(std::move(path)), fd_(std::move(fd)), limits_(limits) {}

SnapshotWriter::~SnapshotWriter() {
  if (fd_.valid()) unlink(path_.c_str());
}

absl::Status SnapshotWriter::Append(std::string_view bytes) {
  archive_bytes_ += static_cast<int64_t>(bytes.size());
  if (archive_bytes_ > MaxArchiveBytes(limits_)) {
    return Error(absl::StatusCode::kResourceExhausted,
                 "the snapshot is larger than {} bytes: list what need not be copied in .tpignore", limits_.max_bytes);
  }
  digest_.Update(bytes);
  return WriteAll(fd_.get(), bytes, path_);
}

absl::StatusOr<SnapshotInfo> SnapshotWriter::Commit(std::string_view expected_id) {
  const std::string id = digest_.HexDigest();
  if (!expected_id.empty() && expected_id != id) {
    return InvalidArgument("the snapshot arrived damaged: its SHA-256 is {}, not {}; submit again", id, expected_id);
  }
  TP_ASSIGN_OR_RETURN(const SnapshotContents contents, CheckSnapshot(path_, limits_));
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, "fsync", path_);
  const std::string final_path = SnapshotPath(storage_root_, id);
  if (rename(path_.c_str(), final_path.c_str()) != 0) return ErrnoStatus(errno, "rename to", final_path);
  fd_.reset();
  TP_ASSIGN_OR_RETURN(const Directory folder, OpenDirectory(FolderPath(storage_root_)));
  TP_RETURN_IF_ERROR(SyncDirectory(folder));
  return SnapshotInfo{id, archive_bytes_, contents.files};
}

SnapshotStore::SnapshotStore(std::string storage_root, const SnapshotLimits& limits)
    : storage_root_(std::move(storage_root)), limits_(limits) {}

absl::StatusOr<SnapshotStore> SnapshotStore::Open(std::string storage_root, const SnapshotLimits& limits) {
  TP_ASSIGN_OR_RETURN(const Directory folder, MakeDirectoriesBeneath(storage_root, kFolder, 0700));
  TP_RETURN_IF_ERROR(RemoveUploads(folder));
  return SnapshotStore(std::move(storage_root), limits);
}

absl::StatusOr<SnapshotWriter> SnapshotStore::Begin() const {
  std::string path = fmt::format("{}/{}{}", FolderPath(storage_root_), kUploadPrefix, RandomName());
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  return SnapshotWriter(storage_root_, std::move(path), std::move(fd), limits_);
}

absl::StatusOr<bool> SnapshotStore::Has(std::string_view id) const {
  if (!IsSnapshotId(id)) return false;
  const std::string path = SnapshotPath(storage_root_, id);
  struct stat about {};
  if (stat(path.c_str(), &about) == 0) return true;
  if (errno == ENOENT) return false;
  return ErrnoStatus(errno, "look for", path);
}

}  // namespace tp::launch
