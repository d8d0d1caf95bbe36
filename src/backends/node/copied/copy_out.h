// Brings what an attempt's ranks have written back to tpd's storage, once all of them are gone: output, results and the
// rest of the logs. Until that is durable the attempt is not said to be over.
//
// Crash-safe: everything is brought beside the attempt first, moved file by file, and a file `.copied-out` in the
// attempt's directory says that it is done. What was cut off is done again and comes to the same.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/node/copied/copy_job.h"
#include "backends/node/copied/copy_site.h"
#include "tp/attempt.h"

namespace tp::node {

struct CopiedOut {
  std::set<std::string> lost_nodes;  // whose output did not come
};

// Nothing: not done yet.
absl::StatusOr<std::optional<CopiedOut>> ReadCopiedOut(const std::string& attempt_dir);

// Blocks until it is done, on machines that do not answer for as long as they do not; CANCELLED where the job was
// called off.
absl::Status CopyOut(const AttemptTarget& target, const CopySite& site, CopyJob& job);

}  // namespace tp::node
