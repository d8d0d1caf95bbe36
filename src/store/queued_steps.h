// The queue as the database has it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace tp::store {

// For Reader::QueuedSteps: of each step only what that tells, not its whole row.
absl::StatusOr<std::vector<QueuedStepRow>> SelectQueuedSteps(Database& database);

}  // namespace tp::store
