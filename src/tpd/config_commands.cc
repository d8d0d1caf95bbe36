#include "tpd/config_commands.h"

#include <cstdio>

#include "base/status.h"
#include "config/load.h"
#include "config/schemas.h"
#include "config/summary.h"
#include "simulate/simulate.h"
#include "tpd/in_kubernetes.h"

namespace tp::tpd {

absl::Status CheckConfig(const std::string& directory) {
  TP_ASSIGN_OR_RETURN(const config::Loaded loaded, config::LoadDirectory(directory, InKubernetes()));
  std::printf("%s: good\n%s", directory.empty() ? "built-in configuration" : directory.c_str(),
              config::Summary(loaded).c_str());
  return absl::OkStatus();
}

void PrintSchema(const std::string& kind) {
  std::fputs((kind == "server" ? config::ServerSchema() : config::RegistrySchema()).c_str(), stdout);
}

absl::Status PrintSimulation(const std::string& scenario_path, const std::string& format) {
  const auto as = format == "json" ? simulate::Format::kJson : simulate::Format::kText;
  TP_ASSIGN_OR_RETURN(const std::string report, simulate::Simulate(scenario_path, as));
  std::fputs(report.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace tp::tpd
