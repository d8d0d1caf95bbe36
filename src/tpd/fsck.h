// `tpd fsck`: whether what is stored agrees with itself.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tp::tpd {

// Walks the ledger's chain, derives its sums anew and checks every step of every run. Read-only, and
// harmless beside a running tpd. Returns what was checked in a sentence, or the first fault.
absl::StatusOr<std::string> CheckDatabase(const std::string& data_directory);

}  // namespace tp::tpd
