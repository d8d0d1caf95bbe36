#include "tpd/config_commands.h"

#include <cstdio>

#include "base/status.h"
#include "config/load.h"
#include "config/schemas.h"
#include "config/summary.h"
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

}  // namespace tp::tpd
