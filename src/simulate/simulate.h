// `tpd simulate`: a scenario's workload under each of its policies, and what comes of it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tp::simulate {

enum class Format : uint8_t { kText, kJson };

// What is printed. Errors as LoadScenario. The same files give the same bytes.
absl::StatusOr<std::string> Simulate(const std::string& scenario_path, Format format);

}  // namespace tp::simulate
