// The steps of a pipeline, drawn: which comes after which, and where each stands. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// A line a step, each below the one it comes after.
std::string StepTree(const v1::Run& run, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
