#include "auth/authenticator.h"

#include <optional>
#include <utility>

#include "base/status.h"

namespace tp::auth {
namespace {

constexpr size_t kMaxCached = 1024;
constexpr std::string_view kScheme = "Bearer ";

absl::Status Unauthenticated(std::string_view sentence) {
  return Error(absl::StatusCode::kUnauthenticated, "{}", sentence);
}

absl::Status UnknownToken() {
  return Unauthenticated("this server does not know the token: use the one in <data>/token, or ask an admin for one");
}

}  // namespace

Authenticator::Authenticator(store::Reader& reader, std::function<absl::Time()> now, absl::Duration cache_for)
    : reader_(reader), now_(std::move(now)), cache_for_(cache_for) {}

absl::StatusOr<Identity> Authenticator::Authenticate(std::string_view authorization) {
  if (authorization.empty()) return Unauthenticated("the call carries no token: send 'authorization: Bearer <token>'");
  if (authorization.substr(0, kScheme.size()) != kScheme) {
    return Unauthenticated("the call's authorization is not a bearer token: send 'authorization: Bearer <token>'");
  }
  TP_ASSIGN_OR_RETURN(const Token token, ParseToken(authorization.substr(kScheme.size())));
  TP_ASSIGN_OR_RETURN(const store::TokenRow row, FindRow(token.id));
  if (!Proves(token, row)) return UnknownToken();
  return Identity{.user = row.user, .role = row.role};
}

absl::StatusOr<store::TokenRow> Authenticator::FindRow(const std::string& id) {
  const absl::Time now = now_();
  if (auto cached = FindCached(id, now)) return *std::move(cached);
  TP_ASSIGN_OR_RETURN(std::optional<store::TokenRow> row, reader_.FindToken(id));
  if (!row) return UnknownToken();
  Remember(*row, now);
  return *std::move(row);
}

std::optional<store::TokenRow> Authenticator::FindCached(const std::string& id, absl::Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = cache_.find(id);
  if (found == cache_.end()) return std::nullopt;
  if (found->second.until > now) return found->second.row;
  cache_.erase(found);
  return std::nullopt;
}

void Authenticator::Remember(const store::TokenRow& row, absl::Time now) {
  const std::lock_guard lock(mutex_);
  if (cache_.size() >= kMaxCached) cache_.clear();
  cache_[row.id] = {.row = row, .until = now + cache_for_};
}

}  // namespace tp::auth
