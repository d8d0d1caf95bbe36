// Brings what an attempt needs to its machines, before any of them is sent its ranks.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "backends/node/copied/copy_job.h"
#include "backends/node/copied/copy_site.h"
#include "tp/launch.h"

namespace tp::node {

// The attempt directory is prepared. Blocks until all machines have everything, or one of them cannot get it.
// CANCELLED where the job was called off; any other sentence is for the user.
absl::Status CopyIn(const LaunchSpec& spec, const CopySite& site, CopyJob& job);

}  // namespace tp::node
