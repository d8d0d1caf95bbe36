// Whole files that a scenario names.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tp::simulate {

inline constexpr size_t kMaxWorkloadBytes = size_t{1} << 30;

// NOT_FOUND, or FAILED_PRECONDITION for what cannot be read or is longer than `max_bytes`.
absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t max_bytes);

// `path` as a file beside `file` where it is not absolute.
std::string Beside(const std::string& file, const std::string& path);

}  // namespace tp::simulate
