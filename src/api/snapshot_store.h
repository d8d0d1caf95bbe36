// Where uploaded working directories are kept, as the API sees it. Implemented over src/launch by tpd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tp::api {

struct StoredSnapshot {
  std::string id;  // SHA-256 of the archive, hex
  int64_t bytes = 0;
  int64_t files = 0;
};

// One upload. Used by one thread at a time; blocking. Destroyed without Finish: nothing is kept.
class SnapshotUpload {
 public:
  virtual ~SnapshotUpload() = default;
  virtual absl::Status Write(std::string_view bytes) = 0;
  // Durable when it returns OK. INVALID_ARGUMENT: the archive is not usable, or not what was announced.
  virtual absl::StatusOr<StoredSnapshot> Finish() = 0;
};

// Thread-safe.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;
  virtual absl::StatusOr<std::unique_ptr<SnapshotUpload>> Begin(const std::string& sha256, int64_t bytes) = 0;
};

}  // namespace tp::api
