// Which blobs and snapshots there are and who needs whom: derived from the files at start, so that nothing
// can drift, and kept in memory. A blob or snapshot that someone was told about is "touched": it stays for
// the collector's grace, needed or not.
//
// Thread-safe, and never held up by storage: what is being removed counts as gone at once, and whoever brings
// it back waits until its file is gone too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/strings.h"
#include "snapshot/manifest.h"

namespace tp::snapshot {

struct Info {
  std::string id;
  int64_t files = 0;
  int64_t bytes = 0;
};

class Index {
 public:
  using Remove = std::function<absl::Status(const std::string& name)>;

  // `owner` is whom the blob is charged to until a snapshot refers to it; empty: nobody.
  void AddBlob(const std::string& sha256, int64_t bytes, const std::string& owner, absl::Time now);
  // To be called before the blob's file is put in its place.
  void AwaitRemovalOf(const std::string& sha256);
  // False: there is no such blob.
  bool TouchBlob(std::string_view sha256, absl::Time now);
  int64_t UnreferencedBytes(const std::string& owner) const;

  // Refers to the manifest's blobs; nobody is told of the snapshot before it is confirmed. FAILED_PRECONDITION
  // names what is missing; INVALID_ARGUMENT a file whose size is not that of its blob.
  absl::Status AddSnapshot(const Manifest& manifest, absl::Time now);
  // Once its manifest is durable, or could not be written.
  void ConfirmSnapshot(const std::string& id);
  void ForgetSnapshot(const std::string& id);
  std::optional<Info> TouchSnapshot(std::string_view id, absl::Time now);

  // Bytes of all blobs that these snapshots or the manifest (may be null) refer to, each blob once. What is not
  // known counts nothing.
  int64_t UnionBytes(const std::vector<std::string>& ids, const Manifest* manifest) const;

  // Not touched since `before`; snapshots that `needed` has stay.
  std::vector<std::string> StaleSnapshots(const std::function<bool(const std::string& id)>& needed,
                                          absl::Time before) const;
  std::vector<std::string> StaleBlobs(absl::Time before) const;
  // By one thread. False or kKept where it was touched or, a blob, referred to meanwhile; else of a blob its bytes.
  static constexpr int64_t kKept = -1;
  absl::StatusOr<bool> RemoveSnapshot(const std::string& id, absl::Time before, const Remove& remove);
  absl::StatusOr<int64_t> RemoveBlob(const std::string& sha256, absl::Time before, const Remove& remove);

 private:
  struct Blob {
    int64_t bytes = 0;
    int64_t references = 0;  // snapshots
    absl::Time touched;
    bool removing = false;
    std::string owner;             // while there are no references
    mutable uint64_t visited = 0;  // the last count that met it
  };
  struct Snapshot {
    std::vector<Blob*> blobs;  // each once
    int64_t files = 0;
    int64_t bytes = 0;
    absl::Time touched;
    bool confirmed = false;
    bool removing = false;
  };

  absl::StatusOr<std::vector<Blob*>> FindBlobs(const Manifest& manifest);
  void Release(const Snapshot& snapshot);
  void Charge(const Blob& blob, int64_t sign);

  mutable std::mutex mutex_;
  std::condition_variable removed_;
  // All guarded by mutex_. Blobs keep their address.
  absl::node_hash_map<std::string, Blob, StringHash, std::equal_to<>> blobs_;
  absl::flat_hash_map<std::string, Snapshot, StringHash, std::equal_to<>> snapshots_;
  absl::flat_hash_map<std::string, int64_t> unreferenced_bytes_;  // by owner
  mutable uint64_t visit_ = 0;
};

}  // namespace tp::snapshot
