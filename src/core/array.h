// Arrays (`tp submit --array 0-31%4`): one run whose steps are equal tasks, each with an index, of which so
// many may be live at once. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/run.h"

namespace tp::core {

inline constexpr int kMaxArrayTasks = 1000;
inline constexpr int32_t kMaxArrayIndex = 1'000'000;

struct ArraySpec {
  std::vector<int32_t> indices;  // rising
  int32_t limit = 0;             // live at once; 0: all of them
  bool operator==(const ArraySpec&) const = default;
};

// `0-31`, `1,3,8-10`, `0-30:10` (every tenth), each with `%4` behind it for at most four at once.
// INVALID_ARGUMENT says what is wrong.
absl::StatusOr<ArraySpec> ParseArray(std::string_view text);

bool IsArray(const RunWithSteps& run);

// Tasks that hold a place: those with a live attempt.
int64_t LiveTasks(const RunWithSteps& run);

// Whether the array lets this queued task be looked at: as many as its limit leaves, those that nothing of
// their own holds back, the lowest first. True for every step that is no task of a limited array.
bool TaskIsDue(const RunWithSteps& run, const Step& step, absl::Time now);

// Where the turn ends: the last task that is due and the first that is not. When one task changed, no
// other's turn but theirs did.
std::vector<int32_t> TasksAtTheEdge(const RunWithSteps& run, absl::Time now);

}  // namespace tp::core
