// Ends of the process on order, for crash tests. The shipped tpd links no_faults.cc and the base's empty fault
// points; tpd-faults links faults.cc.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "tpd/daemon.h"

namespace tp::tpd {

// Reads the orders out of the environment, before any other thread. INVALID_ARGUMENT names the variable.
absl::Status ArmFaults(DaemonOptions& options);

// `fault-points`: the points' names, one a line.
void AddFaultPointsCommand(CLI::App& app);

}  // namespace tp::tpd
