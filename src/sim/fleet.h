// The hardware of a simulated deployment, and what its users ask of it.
#pragma once

#include <string>
#include <vector>

#include "core/registry.h"
#include "sim/options.h"

namespace tp::sim {

// Every shape in ShapeFlags resolves and fits an empty fleet, but under `shrunk`, where those that
// contain the profile `node` are unknown.
core::Registry MakeFleet(const Options& options, bool shrunk);

// Values of --profile, several for several pools.
std::vector<std::vector<std::string>> ShapeFlags(const Options& options);

}  // namespace tp::sim
