#include "simulate/simulate.h"

#include "base/status.h"
#include "simulate/figures.h"
#include "simulate/replay.h"
#include "simulate/report.h"
#include "simulate/scenario.h"

namespace tp::simulate {

absl::StatusOr<std::string> Simulate(const std::string& scenario_path, Format format) {
  TP_ASSIGN_OR_RETURN(const Scenario scenario, LoadScenario(scenario_path));
  Report report{.zone = scenario.zone, .notes = scenario.workload.notes, .policies = {}};
  for (const PolicyCase& rules : scenario.cases) {
    const Outcome outcome = Replay(scenario.workload, rules, scenario.begins, scenario.zone);
    report.policies.push_back(FiguresOf(scenario.workload, rules, outcome));
  }
  switch (format) {
    case Format::kText:
      return TextReport(report);
    case Format::kJson:
      return JsonReport(report);
  }
  return Internal("no such format");
}

}  // namespace tp::simulate
