// From frozen values to what a backend is handed: the environment contract of DESIGN 9. Pure; the same
// input gives the same bytes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/run.h"
#include "core/step.h"
#include "tp/launch.h"

namespace tp::core {

struct LaunchLayout {
  std::string storage_root;
  int64_t log_max_bytes = 0;
  int heartbeat_ms = 0;
};

// `<storage.root>/<owner>/<run id>/attempts/<step>-<n>` and its neighbours.
AttemptPaths PathsOf(const LaunchLayout& layout, const Run& run, const Step& step, int32_t attempt);

// Needs step.attempt. An error here is a fault of the deployment's values and says which.
absl::StatusOr<LaunchSpec> PlanLaunch(const LaunchLayout& layout, const Run& run, const Step& step);

}  // namespace tp::core
