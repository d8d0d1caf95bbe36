// This machine, the way records name it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tp::launch {

struct HostIdentity {
  std::string host;
  std::string boot_id;
};

absl::StatusOr<HostIdentity> ReadHostIdentity();

}  // namespace tp::launch
