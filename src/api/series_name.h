// Series as requests name them. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/registry.h"

namespace tp::api {

// NOT_FOUND with the nearest that exists; OK for an empty name, which stands for all.
absl::Status CheckSeriesName(const core::Registry& registry, const std::string& name);

}  // namespace tp::api
