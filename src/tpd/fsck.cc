#include "tpd/fsck.h"

#include <cstdint>

#include "base/status.h"
#include "core/apply.h"
#include "store/each_run.h"
#include "store/sqlite_reader.h"
#include "store/store.h"

namespace tp::tpd {
namespace {

constexpr int kMaxLooks = 20;

absl::Status CheckRun(const core::RunWithSteps& run) {
  for (const core::Step& step : run.steps) {
    const std::string broken = core::BrokenInvariant(step);
    if (broken.empty()) continue;
    return Error(absl::StatusCode::kDataLoss, "step {} of {}: {}", step.ref.step + 1, run.run.id(), broken);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CheckRuns(store::Reader& reader) {
  int64_t checked = 0;
  TP_RETURN_IF_ERROR(store::EachRun(reader, {}, [&checked](const core::RunWithSteps& run) {
    ++checked;
    return CheckRun(run);
  }));
  return checked;
}

absl::StatusOr<std::string> CheckOnce(store::Reader& reader) {
  TP_RETURN_IF_ERROR(store::CheckLedger(reader));
  TP_ASSIGN_OR_RETURN(const int64_t runs, CheckRuns(reader));
  TP_ASSIGN_OR_RETURN(const store::Meta meta, reader.ReadMeta());
  return fmt::format(
      "epoch {}, revision {}: {} runs agree with the rules, {} ledger rows form one chain and their sums agree",
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
