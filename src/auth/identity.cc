#include "auth/identity.h"

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/status.h"

namespace tp::auth {
namespace {

constexpr size_t kMaxUserName = 32;
constexpr std::array<std::string_view, 4> kRoleNames = {"viewer", "user", "operator", "admin"};

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsFirst(char c) { return IsLower(c) || c == '_'; }
bool IsLater(char c) { return IsFirst(c) || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace

absl::Status CheckUserName(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxUserName && IsFirst(name[0]) &&
      std::all_of(name.begin(), name.end(), IsLater)) {
    return absl::OkStatus();
  }
  return InvalidArgument("user name {} is not usable: a small letter or '_', then up to {} of [a-z0-9_-]", Quoted(name),
                         kMaxUserName - 1);
}

std::string_view Name(store::Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<store::Role> ParseRole(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (kRoleNames[i] == name) return static_cast<store::Role>(i);
  }
  return std::nullopt;
}

}  // namespace tp::auth
