#include "tpd/fsck.h"

#include <cstdint>

#include "base/status.h"
#include "store/sqlite_reader.h"
#include "store/store.h"

namespace tp::tpd {
namespace {

constexpr int kMaxLooks = 20;

absl::StatusOr<std::string> CheckOnce(store::Reader& reader) {
  TP_RETURN_IF_ERROR(store::CheckLedger(reader));
  TP_RETURN_IF_ERROR(store::CheckCorrections(reader));
  TP_ASSIGN_OR_RETURN(const int64_t runs, store::CheckRuns(reader));
  TP_ASSIGN_OR_RETURN(const store::Meta meta, reader.ReadMeta());
  return fmt::format(
      "epoch {}, revision {}: {} runs agree with the rules and with what was billed, {} ledger rows form one chain and "
      "their sums agree",
      meta.epoch, meta.revision, runs, meta.ledger_seq);
}

}  // namespace

absl::StatusOr<std::string> CheckDatabase(const std::string& data_directory) {
  TP_ASSIGN_OR_RETURN(const auto reader, store::SqliteReader::Open(data_directory + "/tpd.db"));
  for (int look = 1;; ++look) {
    TP_ASSIGN_OR_RETURN(const store::Meta before, reader->ReadMeta());
    auto checked = CheckOnce(*reader);
    if (checked.ok() || look == kMaxLooks) return checked;
    // The check reads in several pieces: a commit in between is no fault.
    TP_ASSIGN_OR_RETURN(const store::Meta after, reader->ReadMeta());
    if (after == before) return checked;
  }
}

}  // namespace tp::tpd
