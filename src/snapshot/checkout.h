// A snapshot's tree, written where a job may change it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tp::snapshot {

struct CheckoutCost {
  int64_t files = 0;
  int64_t reflinked = 0;  // files that share their blocks with the blob until one is written
  int64_t copied_bytes = 0;
};

// Into `destination`, which must exist and be empty. Files are reflinks or copies, never hard links, with
// modes 0755 or 0644. Nothing is followed out of the destination, whoever else writes there. Any number of
// threads and processes at a time. NOT_FOUND: the snapshot, or a blob of it, is gone. What was written before
// an error stays.
absl::StatusOr<CheckoutCost> Checkout(const std::string& storage_root, const std::string& id,
                                      const std::string& destination);

}  // namespace tp::snapshot
