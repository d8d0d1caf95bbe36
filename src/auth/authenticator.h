// From the `authorization` value of a call to who is calling.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "auth/identity.h"
#include "auth/token.h"
#include "store/store.h"

namespace tp::auth {

// Thread-safe. May read the store (blocking, microseconds) for a token not seen for a while.
class Authenticator {
 public:
  // A row is read again after `cache_for`, so that a change of it takes effect within that time.
  // `reader` outlives this.
  Authenticator(store::Reader& reader, std::function<absl::Time()> now, absl::Duration cache_for = absl::Seconds(10));

  // `Bearer tp_<id>_<secret>`. UNAUTHENTICATED says the same for an unknown id and a wrong secret.
  absl::StatusOr<Identity> Authenticate(std::string_view authorization);

 private:
  struct Cached {
    store::TokenRow row;
    absl::Time until;
  };

  absl::StatusOr<store::TokenRow> FindRow(const std::string& id);
  std::optional<store::TokenRow> FindCached(const std::string& id, absl::Time now);
  void Remember(const store::TokenRow& row, absl::Time now);

  store::Reader& reader_;
  const std::function<absl::Time()> now_;
  const absl::Duration cache_for_;
  std::mutex mutex_;
  std::map<std::string, Cached> cache_;  // by id; guarded by mutex_
};

}  // namespace tp::auth
