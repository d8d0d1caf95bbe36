#include "notify/signature.h"

#include <fmt/format.h>

#include "absl/strings/escaping.h"
#include "auth/digest.h"
#include "base/status.h"

namespace tp::notify {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr size_t kFewestBytes = 16;

}  // namespace

absl::StatusOr<std::string> KeyOfSecret(std::string_view content) {
  std::string key(content);
  if (content.substr(0, kPrefix.size()) == kPrefix) {
    const std::string encoded(content.substr(kPrefix.size()));
    if (!absl::Base64Unescape(encoded, &key)) return InvalidArgument("what stands behind whsec_ is not base64");
  }
  if (key.size() >= kFewestBytes) return key;
  return InvalidArgument("the secret has {} bytes, at least {} are needed: make one with openssl rand -base64 32",
                         key.size(), kFewestBytes);
}

std::string Sign(std::string_view key, std::string_view id, int64_t unix_seconds, std::string_view body) {
  const std::string digest = auth::HmacSha256(key, fmt::format("{}.{}.{}", id, unix_seconds, body));
  return "v1," + absl::Base64Escape(digest);
}

}  // namespace tp::notify
