#include "store/each_run.h"

#include <cstdint>
#include <optional>

#include "base/status.h"

namespace tp::store {
namespace {

constexpr int kRunsPerRead = 500;

}  // namespace

absl::Status EachRun(Reader& reader, const RunFilter& filter,
                     const std::function<absl::Status(const core::RunWithSteps&)>& visit) {
  std::optional<int64_t> before;
  do {
    TP_ASSIGN_OR_RETURN(const RunPage page, reader.ListRuns(filter, before, kRunsPerRead));
    for (const core::RunWithSteps& run : page.runs) TP_RETURN_IF_ERROR(visit(run));
    before = page.next_before;
  } while (before);
  return absl::OkStatus();
}

}  // namespace tp::store
