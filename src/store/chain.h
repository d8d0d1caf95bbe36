// Where a ledger row gets its place in the chain. Called by the loop while it builds a commit, in the
// order in which the rows will stand in the ledger. Pure.
#pragma once

#include "core/ledger.h"
#include "store/rows.h"

namespace tp::store {

// Hex SHA-256 of core::HashedBytes.
std::string HashOf(const core::LedgerRow& row);

// Fills seq, previous_hash and hash, and moves meta's ledger_seq and ledger_hash on to the row.
void ChainRow(core::LedgerRow& row, Meta& meta);

}  // namespace tp::store
