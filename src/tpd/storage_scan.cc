#include "tpd/storage_scan.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/disk_usage.h"
#include "base/fault_point.h"
#include "base/status.h"
#include "core/quota_use.h"
#include "tpd/give_way.h"

namespace tp::tpd {
StorageScan::StorageScan(Directory storage_root, std::set<std::string> measured, StorageScanOptions options)
    : storage_root_(std::move(storage_root)),
      options_(std::move(options)),
      measured_(std::move(measured)),
      thread_([this] { Work(); }) {}

StorageScan::~StorageScan() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  thread_.join();
}

void StorageScan::Work() {
  GiveWay();
  const auto interval = absl::ToChronoMilliseconds(options_.interval);
  for (;;) {
    const absl::Status status = Round();
    if (!status.ok() && !stopped_) {
      spdlog::warn("storage could not be measured, the next round tries again: {}", Message(status));
    }
    std::unique_lock lock(mutex_);
    if (stopped_changed_.wait_for(lock, interval, [this] { return stopped_.load(); })) return;
  }
}

absl::Status StorageScan::Round() {
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> owners, options_.owners());
  std::set<std::string> all = measured_;
  all.insert(owners.begin(), owners.end());
  all.erase(core::kEverybody);
  for (const std::string& owner : all) {
    Measure(owner);
    if (stopped_) return absl::OkStatus();
  }
  // Nobody counts as using nothing because he could never be measured.
  const bool complete = std::includes(measured_.begin(), measured_.end(), all.begin(), all.end());
  if (complete) Report(core::kEverybody, 0);
  return absl::OkStatus();
}

// An owner who can't be measured keeps the last figure.
void StorageScan::Measure(const std::string& owner) {
  const absl::StatusOr<int64_t> bytes = BytesOf(owner);
  if (stopped_) return;
  if (!bytes.ok()) {
    NoteFailure(owner, bytes.status());
    return;
  }
  failing_.erase(owner);
  measured_.insert(owner);
  Report(owner, *bytes);
}

absl::StatusOr<int64_t> StorageScan::BytesOf(const std::string& owner) const {
  TP_ASSIGN_OR_RETURN(const int64_t files, AllocatedBytes(storage_root_, owner,
                                                          [this] { return stopped_.load(std::memory_order_relaxed); }));
  TP_ASSIGN_OR_RETURN(const int64_t snapshots, options_.snapshot_bytes(owner));
  return files + snapshots;
}

void StorageScan::Report(const std::string& owner, int64_t bytes) {
  ReachFaultPoint(FaultPoint::kBeforeScanResult);
  options_.found({.use = {{.owner = owner, .use = {.bytes = bytes, .scanned_at = options_.now()}}}});
  ReachFaultPoint(FaultPoint::kAfterScanResult);
}

// Once, not every round.
void StorageScan::NoteFailure(const std::string& owner, const absl::Status& status) {
  absl::Status& known = failing_[owner];
  if (known == status) return;
  known = status;
  spdlog::warn("what {} uses of the storage could not be measured, the last figure stays: {}", owner, Message(status));
}

}  // namespace tp::tpd
