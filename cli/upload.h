// The working directory to the server, unless the server has the same content already.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"

namespace tp::cli {

// The snapshot's id. Blocking: reads the whole directory. Progress on a terminal only.
absl::StatusOr<std::string> UploadDirectory(const Context& context, Client& client, const std::string& directory);

}  // namespace tp::cli
