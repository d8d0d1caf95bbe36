// write(2) until all is written.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace tp::cli {

// Waits where `fd` does not block. INVALID_ARGUMENT names `what` was written to, and why it failed.
absl::Status WriteAll(int fd, std::string_view data, std::string_view what);

}  // namespace tp::cli
