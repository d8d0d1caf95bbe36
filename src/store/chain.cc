#include "store/chain.h"

#include "base/sha256.h"

namespace tp::store {

std::string HashOf(const core::LedgerRow& row) {
  Sha256 sha256;
  sha256.Update(core::HashedBytes(row));
  return sha256.HexDigest();
}

void ChainRow(core::LedgerRow& row, Meta& meta) {
  row.seq = meta.ledger_seq + 1;
  row.previous_hash = meta.ledger_hash;
  row.hash = HashOf(row);
  meta.ledger_seq = row.seq;
  meta.ledger_hash = row.hash;
}

}  // namespace tp::store
