#include "backends/driver/missing_backend.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tp::driver {

MissingBackend::MissingBackend(const std::string& name)
    : why_(fmt::format("backend '{}' is not configured: add it to tpd.yaml again and restart tpd", name)) {}

absl::Status MissingBackend::Gone() const { return Unavailable("{}", why_); }

absl::Status MissingBackend::Validate(const LaunchSpec&) const { return Gone(); }
std::string MissingBackend::Render(const LaunchSpec&) const { return why_ + "\n"; }
LaunchResult MissingBackend::Launch(const LaunchSpec&, absl::Time) { return LaunchRefused{why_}; }
FenceResult MissingBackend::Fence(const AttemptTarget&, absl::Time) { return FenceFailed{why_}; }
absl::Status MissingBackend::Stop(const AttemptTarget&, StopLevel, absl::Time) { return Gone(); }
absl::Status MissingBackend::Remove(const AttemptTarget&, absl::Time) { return Gone(); }
absl::StatusOr<std::vector<InventoryItem>> MissingBackend::Inventory(absl::Time) { return Gone(); }
void MissingBackend::SetWake(std::function<void(const std::string& key)>) {}

std::vector<Observation> MissingBackend::Observe(const std::vector<AttemptTarget>& targets, absl::Time) {
  return std::vector<Observation>(targets.size(), Unknown{why_});
}

}  // namespace tp::driver
