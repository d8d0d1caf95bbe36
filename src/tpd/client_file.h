// `<data>/client.json`: how `tp` on this machine finds the server and its token.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace tp::tpd {

// Mode 0600, whole or not at all.
absl::Status WriteClientFile(const std::string& data_directory, const std::string& address,
                             const std::string& token_file);

void RemoveClientFile(const std::string& data_directory);

}  // namespace tp::tpd
