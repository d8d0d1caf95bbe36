// The snapshots of a deployment, as tpd keeps them (snapshot/layout.h). Thread-safe; blocking file I/O.
//
// Errors: those of base/file.h for storage, and what the functions say.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "snapshot/blob_upload.h"
#include "snapshot/index.h"
#include "snapshot/manifest.h"

namespace tp::snapshot {

struct MissingBlob {
  std::string sha256;
  int64_t received_bytes = 0;  // of an interrupted upload of the same owner
};

struct Collected {
  int64_t snapshots = 0;
  int64_t blobs = 0;
  int64_t bytes = 0;
};

class Store {
 public:
  // One store per storage root. Makes its directories, empties tmp/ and reads every manifest; one that is
  // damaged or whose blobs are not all there counts as gone, so that it is sent again.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& storage_root, const Limits& limits,
                                                     std::function<absl::Time()> now);

  const Limits& limits() const { return limits_; }

  // What of these has to be sent. The others stay at least for the collector's grace.
  std::vector<MissingBlob> FindMissing(const std::string& owner, const std::vector<std::string>& digests);

  // Of one stream. The store outlives it.
  std::unique_ptr<BlobUpload> BeginUpload(const std::string& owner);

  // Durable when it returns OK; the same content again is the same snapshot. `charged` are the snapshots
  // that count against the owner's limit now. INVALID_ARGUMENT: too large; FAILED_PRECONDITION: a blob is
  // missing; RESOURCE_EXHAUSTED: the owner's limit.
  absl::StatusOr<Info> Commit(const std::string& owner, const Manifest& manifest,
                              const std::vector<std::string>& charged);

  // Of all files that these snapshots refer to, each content once; what is not there counts nothing.
  int64_t BytesOf(const std::vector<std::string>& ids) const { return index_.UnionBytes(ids, nullptr); }

  // Does not block. Nothing where it is not there; else it stays at least for the collector's grace.
  std::optional<Info> Touch(const std::string& id);

  // Removes snapshots that are not `needed` and then blobs that none refers to, where nobody was told of them
  // for limits().grace; and interrupted uploads of that age. `needed`, the snapshots of runs, is read just
  // before: a run that is submitted meanwhile has touched its snapshot.
  absl::StatusOr<Collected> Collect(const absl::flat_hash_set<std::string>& needed);

 private:
  Store(Directory folder, const Limits& limits, std::function<absl::Time()> now)
      : folder_(std::move(folder)), limits_(limits), now_(std::move(now)) {}

  absl::Status ReadBlobs();
  absl::Status ReadManifests();
  absl::Status CheckUserLimit(const std::string& owner, const Manifest& manifest,
                              const std::vector<std::string>& charged) const;
  absl::Status WriteManifest(const Manifest& manifest) const;
  absl::Status CollectPartials(absl::Time before);

  const Directory folder_;
  const Limits limits_;
  const std::function<absl::Time()> now_;
  Index index_;
  std::mutex commit_mutex_;   // one commit at a time
  std::mutex collect_mutex_;  // one collection at a time
};

}  // namespace tp::snapshot
