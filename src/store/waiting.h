// Which steps of a run are queued and due. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/run.h"
#include "store/store.h"

namespace tp::store {

// As Reader::QueuedSteps has them.
std::vector<QueuedStepRow> WaitingStepsOf(const core::RunWithSteps& run);

// Of arrays, tasks whose turn has not come are left out: `rooms` holds how many more may be live, by run. Rows by
// number.
void LeaveTurns(std::vector<QueuedStepRow>& rows, std::map<int64_t, int64_t> rooms);

}  // namespace tp::store
