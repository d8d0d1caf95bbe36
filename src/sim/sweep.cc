#include "sim/sweep.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/step_simulation.h"

namespace tp::sim {

SweepResult NothingSwept(const core::Table& table) { return {0, 0, INT64_MAX, 0, 0, Coverage(table), std::nullopt}; }

SweepResult Sweep(const SweepPlan& plan) {
  SweepResult result = NothingSwept(*plan.defects.table);
  for (uint64_t seed = plan.first_seed; seed <= plan.last_seed; ++seed) {
    const SimulationPlan one_plan{seed, plan.events, false, plan.defects};
    SimulationResult one = plan.simulator == Simulator::kLoop ? Simulate(one_plan) : SimulateStep(one_plan);
    ++result.seeds;
    result.events += one.events;
    result.fewest_events = std::min(result.fewest_events, one.events);
    result.runs += one.runs;
    result.restarts += one.restarts;
    result.coverage.Add(one.coverage);
    if (!one.broken.empty()) {
      result.failed = std::move(one);
      break;
    }
  }
  return result;
}

std::string DescribeFailure(const SimulationResult& failed, const SweepPlan& plan) {
  std::string text = fmt::format("the last {} lines of seed {}:\n", failed.last_lines.size(), failed.seed);
  for (const std::string& line : failed.last_lines) text += line + "\n";
  text += fmt::format("seed {}: {}\nreplay: sim --seed {} --events {}{}\n", failed.seed, failed.broken, failed.seed,
                      plan.events, plan.simulator == Simulator::kStep ? " --simulator step" : "");
  return text;
}

CoverageReport ReportCoverage(const core::Table& table, const Coverage& whole, const Coverage& steps) {
  CoverageReport report;
  report.fewest = INT64_MAX;
  report.text = fmt::format("{:>9} {:>9}  edge\n", "loop", "step");
  for (size_t row = 0; row < table.size(); ++row) {
    for (int state = 0; state < core::kJobStateCount; ++state) {
      const auto from = static_cast<core::JobState>(state);
      if (!table[row].from.has(from)) continue;
      const int64_t in_whole = whole.Hits(row, from);
      const int64_t in_steps = steps.Hits(row, from);
      ++report.edges;
      report.fewest = std::min(report.fewest, in_whole + in_steps);
      report.text += fmt::format("{:>9} {:>9}  {}: {}{}{} -> {}\n", in_whole, in_steps, core::Name(from),
                                 core::Name(table[row].on), table[row].when.empty() ? "" : ", ", table[row].when,
                                 core::Name(table[row].to.value_or(from)));
    }
  }
  return report;
}

}  // namespace tp::sim
