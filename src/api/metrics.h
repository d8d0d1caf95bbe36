// The metrics of a step: JSON lines of its attempts, merged. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tp::api {

struct MergedMetrics {
  std::vector<std::string> lines;  // as the job wrote them, in order
  bool truncated = false;          // the oldest were left out
};

// `attempts`: content of each attempt's file, the first one first. A line is a JSON object; what is
// none (a torn last line, noise) is left out. Lines of an earlier attempt give way to a later attempt's
// of an equal `step`. Lines with a step below `after_step` are left out. At most the newest `max_bytes`.
MergedMetrics MergeMetrics(const std::vector<std::string>& attempts, int64_t after_step, size_t max_bytes);

}  // namespace tp::api
