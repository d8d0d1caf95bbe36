// Estimated starts as people read them: never without saying that they are estimates. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// `in 2h10m`, `any moment`; empty: there is none.
std::string EstimatedStart(const v1::StartEstimate& estimate, absl::Time now);

// `starts in about 2h10m, at TIME (estimate by time limits; so far 12m off in the median of 41 starts, mostly
// earlier)`, or `no estimate: ` and why. Empty where nothing was estimated.
std::string EstimateSentence(const v1::StartEstimate& estimate, absl::Time now);

// `12m off in the median of 41 starts, mostly earlier`
std::string ErrorsText(const v1::EstimateErrors& errors);

}  // namespace tp::cli
