// Signatures as in Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tp::notify {

// The key of a secret file's content: what base64 behind `whsec_` stands for, else the bytes as they are.
// INVALID_ARGUMENT where it is not base64 or too short; the sentence does not hold the secret.
absl::StatusOr<std::string> KeyOfSecret(std::string_view content);

// Value of the header `webhook-signature`.
std::string Sign(std::string_view key, std::string_view id, int64_t unix_seconds, std::string_view body);

}  // namespace tp::notify
