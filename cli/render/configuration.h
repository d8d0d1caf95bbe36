// The server's configuration as admins read it. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/registry.pb.h"
#include "tp/v1/system.pb.h"

namespace tp::cli {

struct ReloadView {
  bool dry_run = false;
  bool wide = false;
};
// What a reload changed, or would change, and what becomes of the queue.
std::string ReloadPage(const v1::ReloadConfigurationResponse& response, const ReloadView& view,
                       const Terminal& terminal);

std::string RegistryStatusPage(const v1::GetRegistryStatusResponse& status, absl::Time now);

std::string ReceiverTable(const v1::ListReceiversResponse& response, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
