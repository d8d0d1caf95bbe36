#include "tpd/run_storage.h"

#include <algorithm>

#include "api/job_files.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

constexpr char kNoEngine[] = "the storage runs nothing";

absl::Status NoEngine() { return Internal("{}", kNoEngine); }

}  // namespace

absl::Status RunStorage::Remove(const AttemptTarget& target, absl::Time /*deadline*/) {
  const std::string prefix = storage_root_ + "/";
  const std::string& path = target.attempt_dir;
  const std::string below = path.starts_with(prefix) ? path.substr(prefix.size()) : "";
  const size_t slash = below.find('/');
  if (slash == std::string::npos || below.find('/', slash + 1) != std::string::npos) {
    return Internal("{} is not the directory of a run below {}: it is left alone", path, storage_root_);
  }
  const auto owner = api::OpenDirectoryBeneath(storage_root_, below.substr(0, slash));
  if (absl::IsNotFound(owner.status())) return absl::OkStatus();
  TP_RETURN_IF_ERROR(owner.status());
  ReachFaultPoint(FaultPoint::kBeforeRunRemoval);
  TP_RETURN_IF_ERROR(RemoveTree(*owner, below.substr(slash + 1)));
  ReachFaultPoint(FaultPoint::kAfterRunRemoval);
  return absl::OkStatus();
}

absl::Status RunStorage::Validate(const LaunchSpec&) const { return NoEngine(); }
std::string RunStorage::Render(const LaunchSpec&) const { return ""; }
LaunchResult RunStorage::Launch(const LaunchSpec&, absl::Time) {
  return LaunchRejected{LaunchRejected::Kind::kEngine, kNoEngine};
}
std::vector<Observation> RunStorage::Observe(const std::vector<AttemptTarget>& targets, absl::Time) {
  return std::vector<Observation>(targets.size(), Unknown{kNoEngine});
}
FenceResult RunStorage::Fence(const AttemptTarget&, absl::Time) { return FenceFailed{kNoEngine}; }
absl::Status RunStorage::Stop(const AttemptTarget&, StopLevel, absl::Time) { return NoEngine(); }
absl::StatusOr<std::vector<InventoryItem>> RunStorage::Inventory(absl::Time) { return std::vector<InventoryItem>(); }
void RunStorage::SetWake(std::function<void(const std::string& key)>) {}

}  // namespace tp::tpd
