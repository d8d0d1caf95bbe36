// Measures what owners' runs and snapshots take (DESIGN 6, storage quota), every so often, on a thread of
// its own that gives way to everything else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "loop/loop.h"

namespace tp::tpd {

// The functions are called on the scan's thread.
struct StorageScanOptions {
  absl::Duration interval = absl::Minutes(10);  // from the end of a round to the next
  std::function<absl::Time()> now;
  std::function<absl::StatusOr<std::vector<std::string>>()> owners;  // who may have anything
  std::function<absl::StatusOr<int64_t>(const std::string& owner)> snapshot_bytes;
  // A row as soon as an owner was measured; at the end of a round that for everybody else.
  std::function<void(loop::StorageScanned)> found;
};

class StorageScan {
 public:
  // `measured` are those who have a figure from before: who leaves nothing behind gets a new one too. The
  // first round begins at once.
  StorageScan(Directory storage_root, std::set<std::string> measured, StorageScanOptions options);
  // Ends a round under way at its next file.
  ~StorageScan();
  StorageScan(const StorageScan&) = delete;
  StorageScan& operator=(const StorageScan&) = delete;

 private:
  void Work();
  absl::Status Round();
  void Measure(const std::string& owner);
  absl::StatusOr<int64_t> BytesOf(const std::string& owner) const;
  void Report(const std::string& owner, int64_t bytes);
  void NoteFailure(const std::string& owner, const absl::Status& status);

  const Directory storage_root_;
  const StorageScanOptions options_;
  std::set<std::string> measured_;               // the scan's thread only
  std::map<std::string, absl::Status> failing_;  // the scan's thread only: who could not be measured, and why
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  std::atomic<bool> stopped_{false};  // written under mutex_
  std::thread thread_;
};

}  // namespace tp::tpd
