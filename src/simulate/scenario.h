// A scenario with all that its files say, ready to be replayed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "simulate/replay.h"
#include "simulate/workload.h"

namespace tp::simulate {

struct Scenario {
  absl::Time begins;
  absl::TimeZone zone;
  Workload workload;
  std::vector<PolicyCase> cases;  // in the order of the file; at least one
};

// Reads the scenario and the files that it names. INVALID_ARGUMENT: `file:line:column: sentence`, a line for
// each problem; NOT_FOUND or FAILED_PRECONDITION for a file that cannot be read.
absl::StatusOr<Scenario> LoadScenario(const std::string& path);

}  // namespace tp::simulate
