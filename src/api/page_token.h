// Opaque page tokens: a position and a proof that this server made it for this very list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::api {

// Immutable, thread-safe.
class PageTokens {
 public:
  // Tokens are good as long as the key stays the same.
  explicit PageTokens(std::string key);

  // `list` identifies the method and every filter in force.
  std::string Make(std::string_view list, int64_t position) const;

  // INVALID_ARGUMENT: garbled, of another server, or of a list with other filters.
  absl::StatusOr<int64_t> Read(std::string_view list, std::string_view token) const;

 private:
  std::string Proof(std::string_view list, int64_t position) const;

  const std::string key_;
};

}  // namespace tp::api
