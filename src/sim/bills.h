// The ledger against the truth.
#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"
#include "sim/journal.h"
#include "sim/world.h"

namespace tp::sim {

// All rows of one attempt: exact where every record exists, on the clocks of the hosts; elsewhere
// flagged, and never more than was used but by the age of a sight.
void CheckBill(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world, Journal& journal);

}  // namespace tp::sim
