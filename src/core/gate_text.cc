#include "core/gate_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/duration.h"

namespace tp::core {

std::string HoursText(int64_t gpu_ms) {
  return fmt::format("{:.1f}", static_cast<double>(gpu_ms) / static_cast<double>(kMsPerHour));
}

// Whole minutes from one on, else seconds.
std::string LengthText(absl::Duration length) {
  const absl::Duration shown = std::clamp(length, absl::ZeroDuration(), absl::Hours(24 * 3650));
  return DurationText(absl::Floor(shown, shown < absl::Minutes(1) ? absl::Seconds(1) : absl::Minutes(1)));
}

std::string MomentText(absl::Time moment, absl::TimeZone zone) {
  return std::string(absl::FormatTime("%a %Y-%m-%d %H:%M ", moment, zone)) + zone.name();
}

std::string ClockText(absl::Time moment, absl::TimeZone zone) {
  return absl::FormatTime("%a %Y-%m-%d %H:%M %Z", moment, zone);
}

}  // namespace tp::core
