// Who is calling. Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "store/rows.h"

namespace tp::auth {

struct Identity {
  std::string user;
  store::Role role = store::Role::kUser;
  bool operator==(const Identity&) const = default;
};

// [a-z_][a-z0-9_-]{0,31}: user names become folders and labels.
absl::Status CheckUserName(std::string_view name);

// viewer, user, operator, admin
std::string_view Name(store::Role role);
std::optional<store::Role> ParseRole(std::string_view name);

}  // namespace tp::auth
