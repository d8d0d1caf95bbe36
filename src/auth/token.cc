#include "auth/token.h"

#include <algorithm>

#include "auth/digest.h"
#include "base/status.h"

namespace tp::auth {
namespace {

constexpr std::string_view kPrefix = "tp_";
constexpr size_t kIdBytes = 8;
constexpr size_t kSecretBytes = 32;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::Status NotAToken() {
  return Error(absl::StatusCode::kUnauthenticated, "not a token of this product: expected tp_<id>_<secret>");
}

}  // namespace

Token MakeToken() { return {.id = Hex(RandomBytes(kIdBytes)), .secret = Hex(RandomBytes(kSecretBytes))}; }

std::string Text(const Token& token) { return fmt::format("{}{}_{}", kPrefix, token.id, token.secret); }

absl::StatusOr<Token> ParseToken(std::string_view text) {
  constexpr size_t kIdEnd = kPrefix.size() + 2 * kIdBytes;
  if (text.size() != kIdEnd + 1 + 2 * kSecretBytes) return NotAToken();
  const std::string_view id = text.substr(kPrefix.size(), 2 * kIdBytes);
  const std::string_view secret = text.substr(kIdEnd + 1);
  if (text.substr(0, kPrefix.size()) != kPrefix || text[kIdEnd] != '_' || !IsHex(id) || !IsHex(secret)) {
    return NotAToken();
  }
  return Token{.id = std::string(id), .secret = std::string(secret)};
}

store::TokenRow RowOf(const Token& token, const Identity& owner, absl::Time created_at) {
  return {.id = token.id,
          .secret_sha256 = Sha256Hex(token.secret),
          .user = owner.user,
          .role = owner.role,
          .created_at = created_at};
}

bool Proves(const Token& token, const store::TokenRow& row) {
  return EqualInConstantTime(Sha256Hex(token.secret), row.secret_sha256);
}

}  // namespace tp::auth
