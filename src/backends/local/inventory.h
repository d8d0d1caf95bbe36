// Which attempts of a deployment have processes on this machine, found through storage and /proc alone.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/local/tracked_attempt.h"
#include "tp/backend.h"

namespace tp::local {

// Of all epochs; sorted by key. DEADLINE_EXCEEDED where the storage holds more than the time allows.
absl::StatusOr<std::vector<InventoryItem>> TakeInventory(const Machine& machine, const std::string& deployment,
                                                         absl::Time deadline);

}  // namespace tp::local
