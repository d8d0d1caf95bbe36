// This machine, the way records name it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::launch {

struct HostIdentity {
  std::string host;
  std::string boot_id;
};

// A host's name as it stands in file names and record lines; the runner spells it the same way.
std::string SafeHost(std::string_view name);

absl::StatusOr<HostIdentity> ReadHostIdentity();

}  // namespace tp::launch
