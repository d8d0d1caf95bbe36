// API tokens `tp_<id>_<secret>`: the id finds the row, the secret proves possession. The secret has
// 256 random bits, so that a plain SHA-256 of it is all that is stored. Plain values.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "auth/identity.h"
#include "store/rows.h"

namespace tp::auth {

struct Token {
  std::string id;      // 16 hex digits
  std::string secret;  // 64 hex digits
};

Token MakeToken();
std::string Text(const Token& token);

// UNAUTHENTICATED for anything but what Text writes.
absl::StatusOr<Token> ParseToken(std::string_view text);

store::TokenRow RowOf(const Token& token, const Identity& owner, absl::Time created_at);

// In constant time.
bool Proves(const Token& token, const store::TokenRow& row);

}  // namespace tp::auth
