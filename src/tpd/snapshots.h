// launch::SnapshotStore as the API asks for it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "api/snapshot_store.h"
#include "launch/snapshot_store.h"

namespace tp::tpd {

class Snapshots final : public api::SnapshotStore {
 public:
  explicit Snapshots(launch::SnapshotStore store) : store_(std::move(store)) {}

  absl::StatusOr<std::unique_ptr<api::SnapshotUpload>> Begin(const std::string& sha256, int64_t bytes) override;

 private:
  const launch::SnapshotStore store_;
};

}  // namespace tp::tpd
