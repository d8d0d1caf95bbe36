// Which attempts of a deployment have processes on the machines of this backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "backends/node/host_link.h"
#include "tp/backend.h"

namespace tp::node {

// Of all epochs; sorted by key. UNAVAILABLE names the machine that does not answer.
absl::StatusOr<std::vector<InventoryItem>> TakeInventory(const std::vector<std::shared_ptr<HostLink>>& links,
                                                         const std::string& deployment, const std::string& storage_root,
                                                         absl::Time deadline);

}  // namespace tp::node
