#include "tpd/faults.h"

namespace tp::tpd {

absl::Status ArmFaults(DaemonOptions&) { return absl::OkStatus(); }

void AddFaultPointsCommand(CLI::App&) {}

}  // namespace tp::tpd
