#include "api/page_token.h"

#include <charconv>
#include <utility>

#include "api/errors.h"
#include "auth/digest.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr size_t kProofBytes = 16;

}  // namespace

PageTokens::PageTokens(std::string key) : key_(std::move(key)) {}

std::string PageTokens::Make(std::string_view list, int64_t position) const {
  return fmt::format("{}{:x}", Proof(list, position), position);
}

absl::StatusOr<int64_t> PageTokens::Read(std::string_view list, std::string_view token) const {
  constexpr size_t kProofDigits = 2 * kProofBytes;
  if (token.size() > kProofDigits) {
    const std::string_view digits = token.substr(kProofDigits);
    int64_t position = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), position, 16);
    if (error == std::errc{} && end == digits.data() + digits.size() &&
        auth::EqualInConstantTime(token.substr(0, kProofDigits), Proof(list, position))) {
      return position;
    }
  }
  return FieldError("page_token", "page_token does not belong to this list: start again without one");
}

std::string PageTokens::Proof(std::string_view list, int64_t position) const {
  return auth::Hex(auth::HmacSha256(key_, fmt::format("{}\n{}", position, list)).substr(0, kProofBytes));
}

}  // namespace tp::api
