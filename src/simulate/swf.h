// The Standard Workload Format of the Parallel Workloads Archive, version 2.2: comments from `;`, then a line
// of 18 numbers for each job, -1 where one is not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decode/problem.h"
#include "simulate/workload.h"

namespace tp::simulate {

// How processors become the total of --profile.
struct SwfShape {
  std::string profile;
  int64_t processors = 1;     // that one card (on a cpu series one node) stands for; rounded up
  int64_t gpus_per_node = 0;  // of the profile's series: above it totals are rounded up to whole nodes
};

// Jobs without processors or a run time, and the parts of jobs that were checkpointed (status 2 to 4), are
// left out and counted in the notes. A line that is no job adds to `problems`.
Workload ReadSwf(std::string_view text, const SwfShape& shape, decode::Problems& problems);

}  // namespace tp::simulate
