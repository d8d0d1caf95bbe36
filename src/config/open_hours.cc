#include "config/open_hours.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "decode/scalar.h"

namespace tp::config {
namespace {

using decode::Entries;
using decode::Problems;
using decode::Type;
using decode::YamlValue;

constexpr int kMinutesOfDay = 24 * 60;
constexpr int kDaysOfWeek = 7;

// Days as bits, Monday the lowest.
constexpr int kWeekdays = 0b0011111;
constexpr int kWeekend = 0b1100000;

// `07:30`; nothing for what is no time of a day.
std::optional<int> ParseTimeOfDay(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto number = [](std::string_view digits) {
    return digits.find_first_not_of("0123456789") == std::string_view::npos ? decode::ParseInteger(digits)
                                                                            : std::nullopt;
  };
  const std::optional<int64_t> hours = number(text.substr(0, 2));
  const std::optional<int64_t> minutes = number(text.substr(3));
  if (!hours || !minutes || *minutes > 59) return std::nullopt;
  const int64_t total = *hours * 60 + *minutes;
  return total <= kMinutesOfDay ? std::optional<int>(static_cast<int>(total)) : std::nullopt;
}

std::optional<core::OpenInterval> ParseInterval(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<int> from = ParseTimeOfDay(text.substr(0, dash));
  const std::optional<int> to = ParseTimeOfDay(text.substr(dash + 1));
  if (!from || !to || *from == kMinutesOfDay) return std::nullopt;
  return core::OpenInterval{.weekday = 0, .from_minute = *from, .to_minute = *to};
}

// Of no day yet.
Type<core::OpenInterval> IntervalType() {
  Type<core::OpenInterval> type;
  type.words = "times such as 22:00-07:00";
  type.schema = {{"type", "string"},
                 {"pattern", "^([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"}};
  type.decode = [words = type.words](const YamlValue& value, Problems& problems, core::OpenInterval& out) {
    const bool scalar = value.kind == YamlValue::Kind::kScalar;
    const std::optional<core::OpenInterval> interval = scalar ? ParseInterval(value.text) : std::nullopt;
    if (!interval) {
      decode::AddMismatch(value, words, problems);
      return false;
    }
    if (interval->from_minute == interval->to_minute) {
      problems.Add(value.at, fmt::format("{} is empty; a whole day is 00:00-24:00", Quoted(value.text)));
      return false;
    }
    out = *interval;
    return true;
  };
  return type;
}

Type<int> DaysType() {
  return decode::Choice<int>({{"monday", 1},
                              {"tuesday", 1 << 1},
                              {"wednesday", 1 << 2},
                              {"thursday", 1 << 3},
                              {"friday", 1 << 4},
                              {"saturday", 1 << 5},
                              {"sunday", 1 << 6},
                              {"weekdays", kWeekdays},
                              {"weekend", kWeekend},
                              {"daily", kWeekdays | kWeekend}});
}

using ByDay = Entries<int, std::vector<core::OpenInterval>>;

std::vector<core::OpenInterval> Flattened(const ByDay& by_day) {
  std::vector<core::OpenInterval> all;
  for (const auto& entry : by_day) {
    for (int day = 0; day < kDaysOfWeek; ++day) {
      if ((entry.key >> day & 1) == 0) continue;
      for (core::OpenInterval interval : entry.value) {
        interval.weekday = day;
        all.push_back(interval);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Of the same day; what crosses midnight may meet the next day's, and is merged where it matters.
bool Overlap(const core::OpenInterval& a, const core::OpenInterval& b) {
  const auto end = [](const core::OpenInterval& interval) {
    return interval.to_minute > interval.from_minute ? interval.to_minute : kMinutesOfDay;
  };
  return a.weekday == b.weekday && a.from_minute < end(b) && b.from_minute < end(a);
}

}  // namespace

Type<std::vector<core::OpenInterval>> OpenHours() {
  const Type<ByDay> by_day =
      decode::MapOf(DaysType(), decode::ListOf(IntervalType(), "list of times"), "mapping of day to times");
  Type<std::vector<core::OpenInterval>> type;
  type.words = by_day.words;
  type.schema = by_day.schema;
  type.schema["minProperties"] = 1;
  type.decode = [by_day](const YamlValue& value, Problems& problems, std::vector<core::OpenInterval>& out) {
    ByDay decoded;
    if (!by_day.decode(value, problems, decoded)) return false;
    out = Flattened(decoded);
    const auto overlapping = std::adjacent_find(out.begin(), out.end(), Overlap);
    if (out.empty())
      problems.Add(value.at, "a window that never opens; name the times, such as daily: [\"22:00-07:00\"]");
    if (overlapping != out.end()) problems.Add(value.at, "two of these times overlap on one day; write them as one");
    return !out.empty() && overlapping == out.end();
  };
  return type;
}

}  // namespace tp::config
