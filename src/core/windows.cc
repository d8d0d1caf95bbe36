#include "core/windows.h"

#include <algorithm>
#include <utility>

#include "absl/time/civil_time.h"

namespace tp::core {
namespace {

constexpr int kMinutesPerDay = 24 * 60;
// Hours recur weekly; what a clock change swallows is back a week later. Beyond this nothing new comes.
constexpr int kHorizonDays = 5 * 7;

int WeekdayOf(absl::CivilDay day) { return static_cast<int>(absl::GetWeekday(day)); }  // 0: Monday

// The first moment at which the zone's clock shows `local` or later.
absl::Time EdgeAt(const absl::TimeZone& zone, absl::CivilMinute local) {
  const absl::TimeZone::TimeInfo info = zone.At(absl::CivilSecond(local));
  return info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
}

Opening OnDay(const absl::TimeZone& zone, const OpenInterval& hours, absl::CivilDay day) {
  const absl::CivilMinute midnight(day);
  const bool next_day = hours.to_minute <= hours.from_minute;
  return {EdgeAt(zone, midnight + hours.from_minute),
          EdgeAt(zone, midnight + hours.to_minute + (next_day ? kMinutesPerDay : 0))};
}

// Sorted; those that overlap or touch become one, empty ones vanish.
std::vector<Opening> Merged(std::vector<Opening> openings) {
  std::sort(openings.begin(), openings.end(), [](const Opening& a, const Opening& b) { return a.opens < b.opens; });
  std::vector<Opening> merged;
  for (const Opening& opening : openings) {
    if (opening.closes <= opening.opens) continue;
    if (!merged.empty() && opening.opens <= merged.back().closes) {
      merged.back().closes = std::max(merged.back().closes, opening.closes);
    } else {
      merged.push_back(opening);
    }
  }
  return merged;
}

std::vector<Opening> Intersection(const std::vector<Opening>& a, const std::vector<Opening>& b) {
  std::vector<Opening> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Opening common{std::max(a[i].opens, b[j].opens), std::min(a[i].closes, b[j].closes)};
    if (common.opens < common.closes) both.push_back(common);
    a[i].closes < b[j].closes ? ++i : ++j;
  }
  return both;
}

void AppendDays(const Window& window, absl::CivilDay first, absl::CivilDay last, std::vector<Opening>& openings) {
  for (absl::CivilDay day = first; day <= last; ++day) {
    for (const OpenInterval& hours : window.open) {
      if (hours.weekday == WeekdayOf(day)) openings.push_back(OnDay(window.zone, hours, day));
    }
  }
}

// With what is open since the days before, as far as two of them.
Calendar CalendarOf(const SeriesHours& hours, absl::Time at, int days) {
  Calendar calendar{.openings = {}, .from = at, .until = absl::InfiniteFuture(), .always = false};
  for (const Window& window : hours.windows) {
    const absl::CivilDay today = absl::ToCivilDay(at, window.zone);
    AppendDays(window, today - 2, today + days, calendar.openings);
    calendar.until = std::min(calendar.until, EdgeAt(window.zone, absl::CivilMinute(today + days + 1)));
  }
  if (hours.held_open_until) calendar.openings.push_back({at - absl::Hours(48), *hours.held_open_until});
  calendar.openings = Merged(std::move(calendar.openings));
  return calendar;
}

Calendar CalendarOf(const Schedule& schedule, absl::Time at, int days) {
  if (schedule.empty()) return {.openings = {}, .from = at, .until = absl::InfiniteFuture(), .always = true};
  Calendar all = CalendarOf(schedule.front(), at, days);
  for (size_t i = 1; i < schedule.size(); ++i) {
    const Calendar one = CalendarOf(schedule[i], at, days);
    all.openings = Intersection(all.openings, one.openings);
    all.until = std::min(all.until, one.until);
  }
  return all;
}

bool Names(const Window& window, const std::string& profile) {
  return std::find(window.profiles.begin(), window.profiles.end(), profile) != window.profiles.end();
}

std::vector<Window> WindowsFor(const Series& series, const std::string& profile) {
  std::vector<Window> naming;
  std::vector<Window> general;
  for (const Window& window : series.windows) {
    if (window.profiles.empty()) general.push_back(window);
    if (Names(window, profile)) naming.push_back(window);
  }
  return naming.empty() ? general : naming;
}

}  // namespace

std::vector<Opening> Openings(const Window& window, absl::Time from, absl::Time to) {
  std::vector<Opening> openings;
  AppendDays(window, absl::ToCivilDay(from, window.zone) - 9, absl::ToCivilDay(to, window.zone) + 8, openings);
  openings = Merged(std::move(openings));
  std::erase_if(openings, [&](const Opening& opening) { return opening.closes <= from || opening.opens >= to; });
  return openings;
}

Schedule ScheduleOf(const Registry& registry, const ResolvedShape& shape, const HeldOpen& held_open) {
  Schedule schedule;
  for (const PoolShape& pool : shape.pools) {
    const auto series = registry.series.find(pool.series);
    if (series == registry.series.end()) continue;
    SeriesHours hours{
        .series = pool.series, .windows = WindowsFor(series->second, pool.profile), .held_open_until = {}};
    if (hours.windows.empty()) continue;
    if (const auto held = held_open.find(pool.series); held != held_open.end()) hours.held_open_until = held->second;
    if (std::find(schedule.begin(), schedule.end(), hours) == schedule.end()) schedule.push_back(std::move(hours));
  }
  return schedule;
}

absl::Duration PauseGrace(const Schedule& schedule) {
  absl::Duration grace = absl::InfiniteDuration();
  for (const SeriesHours& hours : schedule) {
    for (const Window& window : hours.windows) grace = std::min(grace, window.grace);
  }
  return grace;
}

absl::Duration MinRemaining(const Schedule& schedule) {
  absl::Duration remaining;
  for (const SeriesHours& hours : schedule) {
    for (const Window& window : hours.windows) remaining = std::max(remaining, window.min_remaining);
  }
  return remaining;
}

Calendar CalendarOf(const Schedule& schedule, absl::Time at) { return CalendarOf(schedule, at, kHorizonDays); }

WindowStanding StandingIn(const Calendar& calendar, absl::Time at) {
  if (calendar.always) return {};
  WindowStanding standing{.open = false, .edge = std::nullopt, .longest = absl::ZeroDuration()};
  bool first = true;
  for (const Opening& opening : calendar.openings) {
    if (opening.closes <= at) continue;
    const bool open = opening.opens <= at;
    const bool for_good = opening.closes >= calendar.until;
    standing.longest = std::max(
        standing.longest, open && for_good ? absl::InfiniteDuration() : opening.closes - std::max(opening.opens, at));
    if (!std::exchange(first, false)) continue;
    standing.open = open;
    if (!open) standing.edge = opening.opens;
    if (open && !for_good) standing.edge = opening.closes;
  }
  return standing;
}

std::vector<Opening> OpeningsAhead(const Schedule& schedule, absl::Time at, absl::Duration ahead) {
  if (schedule.empty()) return {{at, at + ahead}};
  const auto days = static_cast<int>(absl::ToInt64Hours(ahead) / 24) + 1;
  std::vector<Opening> openings = CalendarOf(schedule, at, days).openings;
  std::erase_if(openings, [&](const Opening& opening) { return opening.closes <= at || opening.opens >= at + ahead; });
  return openings;
}

absl::Duration NeededOpen(const Schedule& schedule, const WindowStanding& standing,
                          std::optional<absl::Duration> remaining_limit) {
  if (remaining_limit && *remaining_limit <= standing.longest) return *remaining_limit;
  return MinRemaining(schedule);
}

}  // namespace tp::core
