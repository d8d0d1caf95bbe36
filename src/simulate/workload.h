// What a simulation replays: jobs with the time they are submitted and how long they run. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/run.h"

namespace tp::simulate {

struct Submission {
  absl::Duration at;  // after the beginning of the workload
  std::string user;
  std::string profile;  // the --profile flag
  int32_t priority = core::kDefaultPriority;
  std::optional<absl::Duration> time_limit;
  absl::Duration runs;  // with its cards, if nothing ends it before
  std::string refused;  // why no hardware of the source can ever hold it; empty: some can
  bool operator==(const Submission&) const = default;
};

struct Workload {
  std::vector<Submission> jobs;      // in the order of the source
  std::vector<std::string> notes;    // what was left out or assumed, a sentence each
  std::optional<absl::Time> begins;  // where the source says so
  bool operator==(const Workload&) const = default;
};

}  // namespace tp::simulate
