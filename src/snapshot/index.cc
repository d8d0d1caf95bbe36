#include "snapshot/index.h"

#include <utility>

#include "base/printable.h"
#include "base/status.h"

namespace tp::snapshot {

void Index::Charge(const Blob& blob, int64_t sign) {
  if (!blob.owner.empty()) unreferenced_bytes_[blob.owner] += sign * blob.bytes;
}

void Index::AddBlob(const std::string& sha256, int64_t bytes, const std::string& owner, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const auto [found, added] = blobs_.try_emplace(sha256);
  Blob& blob = found->second;
  blob.touched = now;
  if (!added) return;
  blob.bytes = bytes;
  blob.owner = owner;
  Charge(blob, 1);
}

void Index::AwaitRemovalOf(const std::string& sha256) {
  std::unique_lock lock(mutex_);
  removed_.wait(lock, [&] {
    const auto found = blobs_.find(sha256);
    return found == blobs_.end() || !found->second.removing;
  });
}

bool Index::TouchBlob(std::string_view sha256, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = blobs_.find(sha256);
  if (found == blobs_.end() || found->second.removing) return false;
  found->second.touched = now;
  return true;
}

int64_t Index::UnreferencedBytes(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = unreferenced_bytes_.find(owner);
  return found == unreferenced_bytes_.end() ? 0 : found->second;
}

absl::StatusOr<std::vector<Index::Blob*>> Index::FindBlobs(const Manifest& manifest) {
  std::vector<Blob*> blobs;
  const uint64_t visit = ++visit_;
  for (const Entry& entry : manifest.entries()) {
    if (entry.kind != EntryKind::kFile) continue;
    const auto found = blobs_.find(entry.sha256);
    if (found == blobs_.end() || found->second.removing) {
      return FailedPrecondition("the content of {} ({}) is not here: ask for what is missing and send it",
                                Quoted(entry.path), entry.sha256);
    }
    Blob& blob = found->second;
    if (blob.bytes != entry.bytes) {
      return InvalidArgument("{} is said to have {} bytes, its content has {}", Quoted(entry.path), entry.bytes,
                             blob.bytes);
    }
    if (std::exchange(blob.visited, visit) != visit) blobs.push_back(&blob);
  }
  return blobs;
}

absl::Status Index::AddSnapshot(const Manifest& manifest, absl::Time now) {
  std::unique_lock lock(mutex_);
  // Only one that is being removed can be there: a commit is preceded by a look.
  removed_.wait(lock, [&] { return !snapshots_.contains(manifest.id()); });
  TP_ASSIGN_OR_RETURN(std::vector<Blob*> blobs, FindBlobs(manifest));
  for (Blob* blob : blobs) {
    if (blob->references++ > 0) continue;
    Charge(*blob, -1);
    blob->owner.clear();
  }
  snapshots_[manifest.id()] =
      Snapshot{.blobs = std::move(blobs), .files = manifest.files(), .bytes = manifest.bytes(), .touched = now};
  return absl::OkStatus();
}

void Index::Release(const Snapshot& snapshot) {
  for (Blob* blob : snapshot.blobs) --blob->references;
}

void Index::ConfirmSnapshot(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = snapshots_.find(id); found != snapshots_.end()) found->second.confirmed = true;
}

void Index::ForgetSnapshot(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(id);
  if (found == snapshots_.end()) return;
  Release(found->second);
  snapshots_.erase(found);
}

std::optional<Info> Index::TouchSnapshot(std::string_view id, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(id);
  if (found == snapshots_.end() || !found->second.confirmed || found->second.removing) return std::nullopt;
  Snapshot& snapshot = found->second;
  snapshot.touched = now;
  return Info{.id = found->first, .files = snapshot.files, .bytes = snapshot.bytes};
}

int64_t Index::UnionBytes(const std::vector<std::string>& ids, const Manifest* manifest) const {
  const std::lock_guard lock(mutex_);
  const uint64_t visit = ++visit_;
  int64_t bytes = 0;
  const auto count = [&](const Blob& blob) {
    if (std::exchange(blob.visited, visit) != visit) bytes += blob.bytes;
  };
  for (const std::string& id : ids) {
    const auto found = snapshots_.find(id);
    if (found == snapshots_.end()) continue;
    for (const Blob* blob : found->second.blobs) count(*blob);
  }
  if (manifest == nullptr) return bytes;
  for (const Entry& entry : manifest->entries()) {
    if (entry.kind != EntryKind::kFile) continue;
    if (const auto found = blobs_.find(entry.sha256); found != blobs_.end()) count(found->second);
  }
  return bytes;
}

std::vector<std::string> Index::StaleSnapshots(const std::function<bool(const std::string&)>& needed,
                                               absl::Time before) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> stale;
  for (const auto& [id, snapshot] : snapshots_) {
    if (snapshot.touched < before && !needed(id)) stale.push_back(id);
  }
  return stale;
}

std::vector<std::string> Index::StaleBlobs(absl::Time before) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> stale;
  for (const auto& [sha256, blob] : blobs_) {
    if (blob.references == 0 && blob.touched < before) stale.push_back(sha256);
  }
  return stale;
}

absl::StatusOr<bool> Index::RemoveSnapshot(const std::string& id, absl::Time before, const Remove& remove) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = snapshots_.find(id);
    if (found == snapshots_.end() || found->second.touched >= before) return false;
    found->second.removing = true;
  }
  absl::Status status = remove(id);
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(id);
  found->second.removing = false;
  if (status.ok()) {
    Release(found->second);
    snapshots_.erase(found);
  }
  removed_.notify_all();
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<int64_t> Index::RemoveBlob(const std::string& sha256, absl::Time before, const Remove& remove) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = blobs_.find(sha256);
    if (found == blobs_.end() || found->second.references > 0 || found->second.touched >= before) return kKept;
    found->second.removing = true;
  }
  absl::Status status = remove(sha256);
  const std::lock_guard lock(mutex_);
  const auto found = blobs_.find(sha256);
  found->second.removing = false;
  const int64_t bytes = found->second.bytes;
  if (status.ok()) {
    Charge(found->second, -1);
    blobs_.erase(found);
  }
  removed_.notify_all();
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace tp::snapshot
