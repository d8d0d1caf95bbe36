// One seed, from its first event to the proof of its rules: a phase with faults, then one without, in
// which everything has to come to its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/defects.h"
#include "sim/watched_table.h"

namespace tp::sim {

struct SimulationPlan {
  uint64_t seed = 1;
  int64_t events = 500;  // of the phase with faults, at least
  bool print = false;    // every line, as it comes
  Defects defects;
};

struct SimulationResult {
  uint64_t seed = 0;
  std::string broken;  // the first rule found broken; empty: all held
  uint64_t hash = 0;   // of everything that happened, and of the state it left
  int64_t events = 0;
  int64_t runs = 0;
  int64_t restarts = 0;
  std::vector<std::string> last_lines;
  Coverage coverage;
};

SimulationResult Simulate(const SimulationPlan& plan);

}  // namespace tp::sim
