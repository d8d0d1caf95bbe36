// Which cards are held, as committed.
#pragma once

#include "absl/status/statusor.h"
#include "core/placement.h"
#include "core/registry.h"
#include "store/store.h"

namespace tp::api {

// Reads the live runs page by page.
absl::StatusOr<core::Capacity> CommittedCapacity(store::Reader& reader, const core::Registry& registry);

}  // namespace tp::api
