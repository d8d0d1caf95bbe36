// Small secrets in files that only their owner may read. Blocking I/O.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tp::auth {

// The content without its last newline. NOT_FOUND: there is none. FAILED_PRECONDITION: not a regular
// file, not ours, or open to others.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

// Mode 0600, whole or not at all, durable; replaces what is there.
absl::Status WriteSecretFile(const std::string& path, std::string_view content);

// The file's content; on first use `bytes` random bytes as hex.
absl::StatusOr<std::string> LoadOrCreateKey(const std::string& path, size_t bytes);

}  // namespace tp::auth
