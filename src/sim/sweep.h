// Many seeds in a row, and what they reached of the table together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/simulation.h"
#include "sim/watched_table.h"

namespace tp::sim {

enum class Simulator : uint8_t {
  kLoop,  // the product's loop over a store, with crashes
  kStep,  // one step, core alone
};

struct SweepPlan {
  uint64_t first_seed = 1;
  uint64_t last_seed = 1;
  int64_t events = 500;
  Defects defects;
  Simulator simulator = Simulator::kLoop;
};

struct SweepResult {
  int64_t seeds = 0;
  int64_t events = 0;
  int64_t fewest_events = 0;
  int64_t runs = 0;
  int64_t restarts = 0;
  Coverage coverage;
  std::optional<SimulationResult> failed;  // the first; the sweep ends with it
};

SweepResult NothingSwept(const core::Table& table);
SweepResult Sweep(const SweepPlan& plan);

// The seed, the rule it broke, how to replay it, and its last lines.
std::string DescribeFailure(const SimulationResult& failed, const SweepPlan& plan);

// One line for each legal edge, a row of the table from one of its states: hits in each simulator.
// `fewest` is the smallest sum of the two.
struct CoverageReport {
  std::string text;
  int64_t edges = 0;
  int64_t fewest = 0;
};
CoverageReport ReportCoverage(const core::Table& table, const Coverage& whole, const Coverage& steps);

}  // namespace tp::sim
