// Receives blobs, one after the other, and keeps each under its digest once all of it has arrived and is
// durable. Used by one thread at a time; blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/sha256.h"
#include "snapshot/index.h"

namespace tp::snapshot {

// Where an upload works; outlives it.
struct UploadPlace {
  const Directory& folder;  // .snapshots
  Index& index;
  Limits limits;
  std::function<absl::Time()> now;
};

class BlobUpload {
 public:
  BlobUpload(UploadPlace place, std::string owner) : place_(std::move(place)), owner_(std::move(owner)) {}

  // Keeps what is whole, and of the blob under way what has arrived, so that the owner can go on from there.
  ~BlobUpload();
  BlobUpload(const BlobUpload&) = delete;
  BlobUpload& operator=(const BlobUpload&) = delete;

  // The next blob; the one before must be whole. With `offset`, from there on: the server has what comes
  // before from an interrupted upload; FAILED_PRECONDITION where it has not.
  // RESOURCE_EXHAUSTED beyond what a user may have lying about.
  absl::Status Begin(const std::string& sha256, int64_t bytes, int64_t offset);

  // INVALID_ARGUMENT: more than announced, or at the blob's end another digest; the blob is thrown away.
  absl::Status Append(std::string_view data);

  struct Counts {
    int64_t blobs = 0;
    int64_t bytes = 0;  // that arrived
  };
  // All blobs are durable when it returns OK. INVALID_ARGUMENT: the last one is not whole.
  absl::StatusOr<Counts> Finish();

 private:
  struct Blob {
    std::string sha256;
    int64_t bytes = 0;
    std::string temporary;  // below the folder; empty: the server has the blob, its bytes are passed over
  };

  absl::Status CheckRoom(int64_t bytes) const;
  absl::Status Open();
  absl::Status Resume(int64_t offset);
  absl::Status Complete();
  absl::Status Flush();
  absl::Status MakeDurable(const std::vector<Blob>& blobs) const;
  void KeepPartial();
  void Discard(const Blob& blob) const;
  std::string PathOf(const std::string& name) const { return place_.folder.At(name); }

  const UploadPlace place_;
  const std::string owner_;
  bool receiving_ = false;
  Blob current_;
  UniqueFd fd_;  // of the current blob
  Sha256 digest_;
  int64_t received_bytes_ = 0;  // of the current blob, what was there before included
  std::vector<Blob> whole_;     // not yet durable
  int64_t whole_bytes_ = 0;
  Counts counts_;
};

// Of this owner's interrupted uploads: bytes by digest.
absl::flat_hash_map<std::string, int64_t> PartialBlobs(const Directory& folder, const std::string& owner);

}  // namespace tp::snapshot
