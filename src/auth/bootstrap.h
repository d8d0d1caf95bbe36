// The first token of a deployment: for the OS user that runs tpd, in a file only that user can read,
// so that `tp` on the same machine finds it by itself.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/rows.h"

namespace tp::auth {

// Reads the token file or writes a new one, and returns the admin's row that the store must hold: the
// file is the original, so that a crash in between or a restored database heals at the next start.
// Blocking I/O.
absl::StatusOr<store::TokenRow> LoadOrCreateBootstrapToken(const std::string& path, const std::string& user,
                                                           absl::Time now);

// Name of the effective uid, checked by CheckUserName.
absl::StatusOr<std::string> CurrentUserName();

}  // namespace tp::auth
