// Which ranks' logs: `3`, `1-0` or `all`. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tp::cli {

// As the API names them: `3` is `0-3`, rank 3 of the first pool; `all` is `*`. INVALID_ARGUMENT for
// anything else.
absl::StatusOr<std::vector<std::string>> ParseRanks(const std::vector<std::string>& flags);

// Is there more than one, so that their lines need a prefix?
bool AreSeveral(const std::vector<std::string>& ranks);

}  // namespace tp::cli
