// A smaller simulator: one step, core::Apply and the same hidden truth, without loop, store and crashes.
// It reaches what the loop cannot be asked for yet: schedule windows, snapshots that come and go,
// dependencies that fail at any moment.
#pragma once

#include "sim/simulation.h"

namespace tp::sim {

SimulationResult SimulateStep(const SimulationPlan& plan);

}  // namespace tp::sim
