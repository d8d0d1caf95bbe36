// Windows as the API tells them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/registry.h"
#include "core/windows.h"
#include "tp/v1/window.pb.h"

namespace tp::api {

// `Mon-Fri 19:00-07:00, Sat 00:00-24:00`. Neighbouring days with the same hours are one.
std::string HoursText(const std::vector<core::OpenInterval>& open);

// Of a series that has windows. `ahead`: how far openings are listed.
v1::SeriesWindows DescribeWindows(const core::Registry& registry, const core::Series& series,
                                  const core::HeldOpen& held_open, absl::Time now, absl::Duration ahead);

}  // namespace tp::api
