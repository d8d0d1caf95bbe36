#include "snapshot/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/fault_point.h"
#include "base/human_bytes.h"
#include "base/status.h"
#include "snapshot/layout.h"
#include "snapshot/manifest_file.h"

namespace tp::snapshot {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

absl::StatusOr<std::vector<std::string>> NamesIn(const Directory& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.path.c_str()), closedir);
  if (!stream) return ErrnoStatus(errno, "list", directory.path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, "list", directory.path);
  return names;
}

absl::Status RemoveBetween(std::pair<FaultPoint, FaultPoint> points, const Directory& directory,
                           const std::string& name) {
  ReachFaultPoint(points.first);
  TP_RETURN_IF_ERROR(RemoveTree(directory, name));
  ReachFaultPoint(points.second);
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& folder) {
  TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(folder, "manifests", kDirectoryMode).status());
  TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(folder, "partial", kDirectoryMode).status());
  TP_ASSIGN_OR_RETURN(const Directory tmp, MakeDirectoriesBeneath(folder, "tmp", kDirectoryMode));
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> left_over, NamesIn(tmp));
  for (const std::string& name : left_over) TP_RETURN_IF_ERROR(RemoveTree(tmp, name));
  return MakeDirectoriesBeneath(folder, "blobs", kDirectoryMode).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& storage_root, const Limits& limits,
                                                   std::function<absl::Time()> now) {
  TP_ASSIGN_OR_RETURN(Directory folder, MakeDirectoriesBeneath(storage_root, kFolder, kDirectoryMode));
  TP_RETURN_IF_ERROR(MakeFolders(folder.path));
  std::unique_ptr<Store> store(new Store(std::move(folder), limits, std::move(now)));
  TP_RETURN_IF_ERROR(store->ReadBlobs());
  TP_RETURN_IF_ERROR(store->ReadManifests());
  return store;
}

absl::Status Store::ReadBlobs() {
  const absl::Time now = now_();
  TP_ASSIGN_OR_RETURN(const Directory blobs, OpenDirectory(folder_.At("blobs")));
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> prefixes, NamesIn(blobs));
  for (const std::string& prefix : prefixes) {
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(blobs.At(prefix)));
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory));
    for (const std::string& name : names) {
      struct stat about {};
      if (!IsSha256(name)) continue;
      if (fstatat(directory.fd.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
        return ErrnoStatus(errno, "look at", directory.At(name));
      }
      index_.AddBlob(name, about.st_size, "", now);
    }
  }
  return absl::OkStatus();
}

absl::Status Store::ReadManifests() {
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(folder_.At("manifests")));
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory));
  for (const std::string& name : names) {
    if (!IsSha256(name)) {  // of a commit that tpd did not survive
      TP_RETURN_IF_ERROR(RemoveTree(directory, name));
      continue;
    }
    const absl::StatusOr<Manifest> manifest = ReadManifest(folder_, name);
    if (manifest.ok()) {
      // Where a blob is missing it is as good as gone.
      if (index_.AddSnapshot(*manifest, now_()).ok()) index_.ConfirmSnapshot(name);
    } else if (!absl::IsDataLoss(manifest.status())) {
      return manifest.status();
    }
  }
  return absl::OkStatus();
}

std::vector<MissingBlob> Store::FindMissing(const std::string& owner, const std::vector<std::string>& digests) {
  const absl::Time now = now_();
  std::vector<MissingBlob> missing;
  for (const std::string& digest : digests) {
    if (!index_.TouchBlob(digest, now)) missing.push_back({.sha256 = digest, .received_bytes = 0});
  }
  if (missing.empty()) return missing;
  const auto partials = PartialBlobs(folder_, owner);
  for (MissingBlob& blob : missing) {
    if (const auto found = partials.find(blob.sha256); found != partials.end()) blob.received_bytes = found->second;
  }
  return missing;
}

std::unique_ptr<BlobUpload> Store::BeginUpload(const std::string& owner) {
  return std::make_unique<BlobUpload>(UploadPlace{.folder = folder_, .index = index_, .limits = limits_, .now = now_},
                                      owner);
}

absl::Status Store::CheckUserLimit(const std::string& owner, const Manifest& manifest,
                                   const std::vector<std::string>& charged) const {
  const int64_t bytes = index_.UnionBytes(charged, &manifest);
  if (bytes <= limits_.max_user_bytes) return absl::OkStatus();
  return Error(absl::StatusCode::kResourceExhausted,
               "the snapshots of {} would hold {}, at most {} are allowed: remove runs that are over (tp rm), or leave "
               "data out by .tpignore",
               owner, HumanBytes(bytes), HumanBytes(limits_.max_user_bytes));
}

absl::StatusOr<Info> Store::Commit(const std::string& owner, const Manifest& manifest,
                                   const std::vector<std::string>& charged) {
  TP_RETURN_IF_ERROR(CheckSize(manifest.entries(), limits_));
  const std::lock_guard lock(commit_mutex_);
  TP_RETURN_IF_ERROR(CheckUserLimit(owner, manifest, charged));
  if (const auto known = index_.TouchSnapshot(manifest.id(), now_())) return *known;
  TP_RETURN_IF_ERROR(index_.AddSnapshot(manifest, now_()));
  if (absl::Status status = WriteManifest(manifest); !status.ok()) {
    index_.ForgetSnapshot(manifest.id());
    return status;
  }
  index_.ConfirmSnapshot(manifest.id());
  return Info{.id = manifest.id(), .files = manifest.files(), .bytes = manifest.bytes()};
}

absl::Status Store::WriteManifest(const Manifest& manifest) const {
  TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(folder_.At("manifests")));
  ReachFaultPoint(FaultPoint::kBeforeManifest);
  TP_RETURN_IF_ERROR(ReplaceFile(directory, manifest.id(), manifest.text(), kFileMode, Sync::kDurable));
  ReachFaultPoint(FaultPoint::kAfterManifest);
  return absl::OkStatus();
}

std::optional<Info> Store::Touch(const std::string& id) { return index_.TouchSnapshot(id, now_()); }

absl::StatusOr<Collected> Store::Collect(const absl::flat_hash_set<std::string>& needed) {
  const std::lock_guard lock(collect_mutex_);
  const absl::Time before = now_() - limits_.grace;
  Collected collected;
  TP_ASSIGN_OR_RETURN(const Directory manifests, OpenDirectory(folder_.At("manifests")));
  const Index::Remove remove_manifest = [&](const std::string& id) {
    return RemoveBetween({FaultPoint::kBeforeManifestRemoval, FaultPoint::kAfterManifestRemoval}, manifests, id);
  };
  for (const std::string& id : index_.StaleSnapshots([&](const auto& name) { return needed.contains(name); }, before)) {
    TP_ASSIGN_OR_RETURN(const bool removed, index_.RemoveSnapshot(id, before, remove_manifest));
    if (removed) ++collected.snapshots;
  }
  // A manifest never outlives its blobs, not even where the power fails now.
  TP_RETURN_IF_ERROR(SyncDirectory(manifests));
  const Index::Remove remove_blob = [&](const std::string& sha256) {
    return RemoveBetween({FaultPoint::kBeforeBlobRemoval, FaultPoint::kAfterBlobRemoval}, folder_, BlobPath(sha256));
  };
  for (const std::string& sha256 : index_.StaleBlobs(before)) {
    TP_ASSIGN_OR_RETURN(const int64_t bytes, index_.RemoveBlob(sha256, before, remove_blob));
    if (bytes == Index::kKept) continue;
    ++collected.blobs;
    collected.bytes += bytes;
  }
  TP_RETURN_IF_ERROR(CollectPartials(before));
  return collected;
}

absl::Status Store::CollectPartials(absl::Time before) {
  TP_ASSIGN_OR_RETURN(const Directory partial, OpenDirectory(folder_.At("partial")));
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> owners, NamesIn(partial));
  for (const std::string& owner : owners) {
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(partial.At(owner)));
    TP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(directory));
    for (const std::string& name : names) {
      struct stat about {};
      if (fstatat(directory.fd.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone on with
      if (absl::TimeFromTimespec(about.st_mtim) < before) TP_RETURN_IF_ERROR(RemoveTree(directory, name));
    }
  }
  return absl::OkStatus();
}

}  // namespace tp::snapshot
