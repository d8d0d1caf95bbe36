#include "api/window_hours.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/convert.h"

namespace tp::api {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

std::string ClockText(int minute) { return fmt::format("{:02}:{:02}", minute / 60, minute % 60); }

// The same hours from one weekday to another.
struct DayRange {
  int first = 0;
  int last = 0;
  std::pair<int, int> hours;
};

std::string Text(const DayRange& range) {
  const std::string_view first = kDays[static_cast<size_t>(range.first)];
  const std::string days = range.first == range.last
                               ? std::string(first)
                               : fmt::format("{}-{}", first, kDays[static_cast<size_t>(range.last)]);
  return fmt::format("{} {}-{}", days, ClockText(range.hours.first), ClockText(range.hours.second));
}

v1::WindowRule RuleMessage(const core::Window& window) {
  v1::WindowRule to;
  to.set_zone(window.zone.name());
  to.set_hours(HoursText(window.open));
  *to.mutable_grace() = ToProto(window.grace);
  *to.mutable_min_remaining() = ToProto(window.min_remaining);
  return to;
}

v1::WindowHours HoursMessage(const core::Schedule& schedule, absl::Time now, absl::Duration ahead) {
  v1::WindowHours to;
  for (const core::Window& window : schedule.front().windows) *to.add_rules() = RuleMessage(window);
  const core::WindowStanding standing = core::StandingAt(schedule, now);
  to.set_open(standing.open);
  if (standing.edge) *to.mutable_next_edge() = ToProto(*standing.edge);
  for (const core::Opening& opening : core::OpeningsAhead(schedule, now, ahead)) {
    v1::WindowOpening* one = to.add_openings();
    *one->mutable_opens_at() = ToProto(std::max(opening.opens, now));
    *one->mutable_closes_at() = ToProto(opening.closes);
  }
  return to;
}

core::Schedule ScheduleOfProfile(const core::Registry& registry, const core::Series& series, const std::string& profile,
                                 const core::HeldOpen& held_open) {
  core::PoolShape pool;
  pool.series = series.name;
  pool.profile = profile;
  core::ResolvedShape shape;
  shape.pools.push_back(std::move(pool));
  return core::ScheduleOf(registry, shape, held_open);
}

std::set<std::string> ProfilesNamed(const core::Series& series) {
  std::set<std::string> profiles;
  for (const core::Window& window : series.windows) profiles.insert(window.profiles.begin(), window.profiles.end());
  return profiles;
}

}  // namespace

std::string HoursText(const std::vector<core::OpenInterval>& open) {
  std::vector<DayRange> ranges;
  for (const core::OpenInterval& interval : open) {
    const std::pair hours(interval.from_minute, interval.to_minute);
    const auto before = std::find_if(ranges.begin(), ranges.end(), [&](const DayRange& range) {
      return range.hours == hours && range.last + 1 == interval.weekday;
    });
    if (before != ranges.end()) {
      before->last = interval.weekday;
    } else {
      ranges.push_back({.first = interval.weekday, .last = interval.weekday, .hours = hours});
    }
  }
  std::string text;
  for (const DayRange& range : ranges) text += (text.empty() ? "" : ", ") + Text(range);
  return text;
}

v1::SeriesWindows DescribeWindows(const core::Registry& registry, const core::Series& series,
                                  const core::HeldOpen& held_open, absl::Time now, absl::Duration ahead) {
  v1::SeriesWindows to;
  to.set_series(series.name);
  if (const auto held = held_open.find(series.name); held != held_open.end() && held->second > now) {
    *to.mutable_held_open_until() = ToProto(held->second);
  }
  std::vector<core::Schedule> described;
  std::set<std::string> profiles = ProfilesNamed(series);
  profiles.insert("");  // those that no window names; the first in order
  for (const std::string& profile : profiles) {
    core::Schedule schedule = ScheduleOfProfile(registry, series, profile, held_open);
    if (schedule.empty()) continue;
    const auto same = std::find(described.begin(), described.end(), schedule);
    if (same == described.end()) *to.add_hours() = HoursMessage(schedule, now, ahead);
    v1::WindowHours* hours = to.mutable_hours(static_cast<int>(same - described.begin()));
    if (same == described.end()) described.push_back(std::move(schedule));
    if (!profile.empty()) hours->add_profiles(profile);
  }
  return to;
}

}  // namespace tp::api
