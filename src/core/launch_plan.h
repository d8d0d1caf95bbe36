// From frozen values to what a backend is handed: the environment contract of DESIGN 9. Pure; the same
// input gives the same bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/run.h"
#include "core/step.h"
#include "tp/launch.h"

namespace tp::core {

struct LaunchLayout {
  std::string storage_root;  // absolute
  int64_t log_max_bytes = 0;
  int heartbeat_ms = 0;
};

// `<storage.root>/<owner>/<run id>/attempts/<step>-<n>` and its neighbours. Whatever owner, run and step
// are called, the paths are below the storage root, and different names give different paths: bytes
// that have no place in a path component are written as %XX.
AttemptPaths PathsOf(const LaunchLayout& layout, const Run& run, const Step& step, int32_t attempt);

// `<storage.root>/<owner>/<run id>`, which holds all of these.
std::string RunDirectoryOf(const LaunchLayout& layout, const Run& run);

// Name of a pool's $TP_OVERRIDES_FILE in the attempt directory.
std::string OverridesFileName(int pool);

// Needs step.attempt. An error here is a fault of the deployment's values and says which.
//
// Each rank's environment, the last of these wins: MASTER_* and PET_* of the contract (where addresses
// and ports are known before the launch), what MergeEnv says, TP_* and CUDA_VISIBLE_DEVICES of the
// contract. CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are set where tpd chose the node, the first empty on a cpu
// series.
absl::StatusOr<LaunchSpec> PlanLaunch(const LaunchLayout& layout, const Run& run, const Step& step);

}  // namespace tp::core
