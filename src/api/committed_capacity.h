// Which cards are held, as committed, and what is wrong with that.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/placement.h"
#include "core/registry.h"
#include "store/store.h"

namespace tp::api {

// Reads the live runs page by page.
absl::StatusOr<core::Capacity> CommittedCapacity(store::Reader& reader, const core::Registry& registry);

// core::CardCheck over them.
absl::StatusOr<std::vector<std::string>> CommittedCardFaults(store::Reader& reader, const core::Registry& registry);

}  // namespace tp::api
