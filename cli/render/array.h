// The tasks of an array: how many are where, and those that need a look. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// `1000 tasks, 16 at once: 16 running, 200 succeeded, 3 failed, 781 queued`
std::string ArrayLine(const v1::ArrayStatus& array);

// Tasks that failed, are live or are paused, those first; not the ones that wait or are done.
std::string TaskTable(const v1::Run& run, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
