// Where a run's files are, opened from the storage root down without following what a job may have put
// in the way. Blocking I/O. NOT_FOUND: not there yet.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "core/launch_plan.h"
#include "core/run.h"

namespace tp::api {

// <storage.root>/<owner>/<run id>
absl::StatusOr<Directory> OpenRunDirectory(const core::LaunchLayout& layout, const core::Run& run);

// attempts/<step>-<n>
absl::StatusOr<Directory> OpenAttemptDirectory(const core::LaunchLayout& layout, const core::Run& run,
                                               const core::Step& step, int32_t attempt);

// results/, with one folder a step. `run` has at least one step.
absl::StatusOr<Directory> OpenResultsDirectory(const core::LaunchLayout& layout, const core::RunWithSteps& run);

}  // namespace tp::api
