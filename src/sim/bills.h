// The ledger against the truth.
#pragma once

#include <string>
#include <vector>

#include "core/ledger.h"
#include "sim/journal.h"
#include "sim/world.h"

namespace tp::sim {

// The rows that one attempt was billed by: exact where every record exists, on the clocks of the hosts; elsewhere
// flagged, and never more than was used but by the age of a sight.
void CheckBill(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world, Journal& journal);

// All rows of one attempt that has been corrected: exact.
void CheckCorrected(const std::string& key, const std::vector<core::LedgerRow>& rows, const World& world,
                    Journal& journal);

}  // namespace tp::sim
