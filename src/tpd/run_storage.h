// The storage as the loop's effects see it: a backend whose only objects are the directories of runs,
// and whose only order is to remove one (`tp rm`). Blocking I/O; safe from any thread.
#pragma once

#include <string>

#include "tp/backend.h"

namespace tp::tpd {

class RunStorage final : public Backend {
 public:
  explicit RunStorage(std::string storage_root) : storage_root_(std::move(storage_root)) {}

  // `target.attempt_dir` is `<storage.root>/<owner>/<run id>`. Gone already is OK.
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;

  // Nothing is launched here.
  Capabilities capabilities() const override { return {}; }
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

 private:
  const std::string storage_root_;
};

}  // namespace tp::tpd
