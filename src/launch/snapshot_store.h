// The archives of submitted working directories: `<storage.root>/.snapshots/<id>.tar`, the id being the
// SHA-256 of the archive. Thread-safe; one writer per upload, used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "launch/archive.h"

namespace tp::launch {

struct SnapshotInfo {
  std::string id;
  int64_t archive_bytes = 0;
  int64_t files = 0;
};

std::string SnapshotPath(std::string_view storage_root, std::string_view id);

// Exactly what a SHA-256 looks like: an id becomes part of a path.
bool IsSnapshotId(std::string_view id);

// An upload under way. Destroyed before Commit it leaves nothing behind.
class SnapshotWriter {
 public:
  SnapshotWriter(SnapshotWriter&&) = default;
  SnapshotWriter& operator=(SnapshotWriter&&) = delete;
  ~SnapshotWriter();

  // RESOURCE_EXHAUSTED beyond the limit or where the disk is full.
  absl::Status Append(std::string_view bytes);

  // Checks the whole archive, then makes it durable under its id. `expected_id` may be empty;
  // INVALID_ARGUMENT where the bytes are other ones, or the archive is not acceptable.
  absl::StatusOr<SnapshotInfo> Commit(std::string_view expected_id);

 private:
  friend class SnapshotStore;
  SnapshotWriter(std::string storage_root, std::string path, UniqueFd fd, const SnapshotLimits& limits);

  std::string storage_root_;
  std::string path_;
  UniqueFd fd_;
  SnapshotLimits limits_;
  Sha256 digest_;
  int64_t archive_bytes_ = 0;
};

class SnapshotStore {
 public:
  // Makes the directory and removes what interrupted uploads left. One store per storage root.
  static absl::StatusOr<SnapshotStore> Open(std::string storage_root, const SnapshotLimits& limits);

  absl::StatusOr<SnapshotWriter> Begin() const;
  absl::StatusOr<bool> Has(std::string_view id) const;

 private:
  SnapshotStore(std::string storage_root, const SnapshotLimits& limits);

  std::string storage_root_;
  SnapshotLimits limits_;
};

}  // namespace tp::launch
