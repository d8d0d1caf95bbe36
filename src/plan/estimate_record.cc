#include "plan/estimate_record.h"

#include <algorithm>
#include <vector>

namespace tp::plan {
namespace {

// The smallest value that at least `percent` of all are not above.
absl::Duration Percentile(std::vector<absl::Duration> values, size_t percent) {
  const size_t rank = (values.size() * percent + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void EstimateRecord::Add(absl::Time estimated, absl::Time started) {
  late_.push_back(started - estimated);
  if (late_.size() > kStarts) late_.pop_front();
}

std::optional<EstimateErrors> EstimateRecord::errors() const {
  if (late_.empty()) return std::nullopt;
  const std::vector<absl::Duration> late(late_.begin(), late_.end());
  std::vector<absl::Duration> off;
  off.reserve(late.size());
  for (const absl::Duration one : late) off.push_back(absl::AbsDuration(one));
  return EstimateErrors{.starts = static_cast<int64_t>(late.size()),
                        .median_off = Percentile(off, 50),
                        .p90_off = Percentile(off, 90),
                        .bias = Percentile(late, 50)};
}

}  // namespace tp::plan
