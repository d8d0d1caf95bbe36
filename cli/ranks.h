// Which ranks' logs: `3`, `1-0` or `all`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

bool WantsAllRanks(const std::vector<std::string>& flags);

// `3` is rank 3 of the first pool. INVALID_ARGUMENT for anything but a number or two.
absl::StatusOr<std::vector<std::string>> ParseRanks(const std::vector<std::string>& flags);

// Of the step `number`, counted from 1; 0: the newest that has an attempt. INVALID_ARGUMENT where the
// step has several pools, whose sizes the API does not tell.
absl::StatusOr<std::vector<std::string>> AllRanks(const v1::Run& run, int32_t number);

}  // namespace tp::cli
