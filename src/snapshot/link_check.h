// Does a link of a snapshot stay inside the snapshot's tree?
#pragma once

#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/strings.h"
#include "snapshot/manifest.h"

namespace tp::snapshot {

using EntryMap = absl::flat_hash_map<std::string_view, const Entry*, StringHash, std::equal_to<>>;

// Follows the link as the kernel would, through the other links of the tree. INVALID_ARGUMENT where it is
// absolute or above the root at any step. Through what the tree does not hold, names are counted: a link to
// nothing is kept.
absl::Status CheckLink(const Entry& link, const EntryMap& tree);

}  // namespace tp::snapshot
