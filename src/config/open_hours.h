// The hours of a schedule window, by day: `{weekdays: ["22:00-07:00"], weekend: ["00:00-24:00"]}`.
#pragma once

#include <vector>

#include "core/registry.h"
#include "decode/type.h"

namespace tp::config {

// Sorted, by weekday and start. At least one interval; those of a day do not overlap.
decode::Type<std::vector<core::OpenInterval>> OpenHours();

}  // namespace tp::config
