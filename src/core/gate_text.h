// Numbers of gates as people read them. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tp::core {

inline constexpr int64_t kMsPerHour = 3'600'000;

std::string HoursText(int64_t gpu_ms);                           // `12.5`
std::string LengthText(absl::Duration length);                   // `1h20m`, as --time-limit takes it
std::string MomentText(absl::Time moment, absl::TimeZone zone);  // `Tue 2026-12-01 19:00 Europe/Berlin`
std::string ClockText(absl::Time moment, absl::TimeZone zone);   // `Tue 2026-12-01 19:00 CET`

}  // namespace tp::core
