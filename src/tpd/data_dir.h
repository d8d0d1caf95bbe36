// Where tpd keeps what is its own: database, token, client.json, and the runs unless configured.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tp::tpd {

// $TP_DATA_DIR, else /var/lib/tp for root and ~/.local/share/tp for others.
absl::StatusOr<std::string> DefaultDataDirectory();

// Makes the directory where it is missing, mode 0700, and returns its absolute path.
absl::StatusOr<std::string> PrepareDirectory(const std::string& path);

}  // namespace tp::tpd
