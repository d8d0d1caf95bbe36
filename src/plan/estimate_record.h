// How far estimates were off , for whoever reads one. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace tp::plan {

struct EstimateErrors {
  int64_t starts = 0;         // that the figures are of
  absl::Duration median_off;  // of the distance between estimate and start
  absl::Duration p90_off;
  absl::Duration bias;  // median of start - estimate: below zero they start earlier than estimated
  bool operator==(const EstimateErrors&) const = default;
};

// The last starts that had an estimate.
class EstimateRecord {
 public:
  static constexpr size_t kStarts = 256;

  void Add(absl::Time estimated, absl::Time started);
  // Nothing before the first.
  std::optional<EstimateErrors> errors() const;

 private:
  std::deque<absl::Duration> late_;  // start - estimate, the newest last
};

}  // namespace tp::plan
