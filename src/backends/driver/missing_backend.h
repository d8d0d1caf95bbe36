// Stands in for a backend that attempts name and the configuration no longer has: nothing can be known
// or done, and every answer says why.
#pragma once

#include <string>

#include "tp/backend.h"

namespace tp::driver {

class MissingBackend : public Backend {
 public:
  explicit MissingBackend(const std::string& name);

  Capabilities capabilities() const override { return {}; }
  absl::Status Validate(const LaunchSpec& spec) const override;
  std::string Render(const LaunchSpec& spec) const override;
  LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) override;
  std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) override;
  FenceResult Fence(const AttemptTarget& target, absl::Time deadline) override;
  absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) override;
  absl::Status Remove(const AttemptTarget& target, absl::Time deadline) override;
  absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) override;
  void SetWake(std::function<void(const std::string& key)> wake) override;

 private:
  absl::Status Gone() const;

  const std::string why_;
};

}  // namespace tp::driver
