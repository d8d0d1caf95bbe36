// Durations as people write them: `30s`, `10m`, `2h30m`, `1d`, `500ms`. One grammar for configuration
// files and the command line.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/printable.h"
#include "base/status.h"

namespace tp {

struct DurationUnit {
  std::string_view name;
  int64_t ms;
};
inline constexpr std::array<DurationUnit, 5> kDurationUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
// Above any use, and far from where sums of durations and times overflow.
inline constexpr int64_t kLongestDurationMs = int64_t{3650} * 86'400'000;

// Whole numbers with a unit each, from the largest unit to the smallest, each unit once.
inline absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  const auto malformed = [&] {
    return InvalidArgument("{} is not a duration: write numbers with units d, h, m, s or ms, such as 30s or 2h30m",
                           Quoted(text));
  };
  int64_t total_ms = 0;
  size_t next_unit = 0;
  std::string_view rest = text;
  if (rest.empty()) return malformed();
  while (!rest.empty()) {
    if (rest[0] == '-') return malformed();
    int64_t count = 0;
    const auto [digits_end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (error == std::errc::invalid_argument) return malformed();
    rest.remove_prefix(static_cast<size_t>(digits_end - rest.data()));
    const std::string_view name = rest.substr(0, rest.find_first_of("0123456789"));
    while (next_unit < kDurationUnits.size() && kDurationUnits[next_unit].name != name) ++next_unit;
    if (next_unit == kDurationUnits.size()) return malformed();
    const int64_t unit_ms = kDurationUnits[next_unit++].ms;
    if (error == std::errc::result_out_of_range || count > (kLongestDurationMs - total_ms) / unit_ms) {
      return InvalidArgument("{} is too long: at most 3650d", Quoted(text));
    }
    total_ms += count * unit_ms;
    rest.remove_prefix(name.size());
  }
  return absl::Milliseconds(total_ms);
}

// What ParseDuration reads back; what is below a millisecond is dropped. Not negative.
inline std::string DurationText(absl::Duration duration) {
  int64_t rest_ms = absl::ToInt64Milliseconds(duration);
  std::string out;
  for (const DurationUnit& unit : kDurationUnits) {
    if (rest_ms >= unit.ms) out += fmt::format("{}{}", rest_ms / unit.ms, unit.name);
    rest_ms %= unit.ms;
  }
  return out.empty() ? "0s" : out;
}

}  // namespace tp
