// `tpd check-config`, `tpd schema` and `tpd simulate`: for admins, before tpd is started or told to reload.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace tp::tpd {

// Prints what the files of `directory` come to (empty: the built-in ones). INVALID_ARGUMENT: every
// problem as a line `file:line:column: sentence`.
absl::Status CheckConfig(const std::string& directory);

// Prints the JSON Schema of tpd.yaml (`server`) or registry.yaml (`registry`).
void PrintSchema(const std::string& kind);

// Prints what comes of a scenario, as `text` or `json`. Errors as simulate::Simulate.
absl::Status PrintSimulation(const std::string& scenario_path, const std::string& format);

}  // namespace tp::tpd
