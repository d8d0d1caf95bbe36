// Windows against an oracle that goes minute by minute and knows nothing of zones but what a clock on the
// wall shows at each.
#include "core/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/time/civil_time.h"

namespace tp::core {
namespace {

absl::TimeZone Named(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name << ": is the package tzdata there?";
  return zone;
}

Window Rules(const std::string& zone, std::vector<OpenInterval> hours) {
  Window rules;
  rules.zone = Named(zone);
  rules.open = std::move(hours);
  return rules;
}

// A schedule that is open while all of `windows` are.
Schedule All(const std::vector<Window>& windows) {
  Schedule schedule;
  for (const Window& window : windows) {
    schedule.push_back({.series = "h200", .windows = {window}, .held_open_until = std::nullopt});
  }
  return schedule;
}

// What counts but for `longest`, which has tests of its own.
void ExpectStanding(const WindowStanding& standing, bool open, std::optional<absl::Time> edge) {
  EXPECT_EQ(standing.open, open);
  EXPECT_EQ(standing.edge, edge);
}

std::vector<OpenInterval> EveryDay(int from_minute, int to_minute) {
  std::vector<OpenInterval> hours;
  for (int day = 0; day < 7; ++day) hours.push_back({day, from_minute, to_minute});
  return hours;
}

absl::Time At(const absl::TimeZone& zone, absl::CivilMinute local) {
  return absl::FromCivil(absl::CivilSecond(local), zone);
}

TEST(Windows, NightsCrossMidnight) {
  const Window nights = Rules("Europe/Berlin", EveryDay(19 * 60, 8 * 60));
  const auto at = [&](int hour) { return At(nights.zone, absl::CivilMinute(2026, 6, 3, hour, 0)); };
  ExpectStanding(StandingAt(All({nights}), at(12)), false, at(19));
  ExpectStanding(StandingAt(All({nights}), at(20)), true, at(8) + absl::Hours(24));
  EXPECT_EQ(StandingAt(All({nights}), at(8)).open, false);
  EXPECT_EQ(StandingAt(All({nights}), at(19)).open, true);
  EXPECT_EQ(StandingAt(All({nights}), at(12)).longest, absl::Hours(13));
}

TEST(Windows, AWeekendIsOneInterval) {
  const Window weekend = Rules("UTC", {{4, 18 * 60, 24 * 60}, {5, 0, 24 * 60}, {6, 0, 24 * 60}, {0, 0, 7 * 60}});
  const absl::Time saturday = At(weekend.zone, absl::CivilMinute(2026, 6, 6, 12, 0));
  ExpectStanding(StandingAt(All({weekend}), saturday), true, At(weekend.zone, absl::CivilMinute(2026, 6, 8, 7, 0)));
}

TEST(Windows, TheWholeWeekNeverCloses) {
  const Window always = Rules("America/New_York", EveryDay(0, 24 * 60));
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  ExpectStanding(StandingAt(All({always}), now), true, std::nullopt);
  EXPECT_EQ(StandingAt(All({always}), now).longest, absl::InfiniteDuration());
}

TEST(Windows, WithoutHoursNeverOpens) {
  ExpectStanding(StandingAt(All({Rules("UTC", {})}), absl::FromUnixSeconds(1'800'000'000)), false, std::nullopt);
}

TEST(Windows, SeveralSeriesAreOpenTogether) {
  const Window day = Rules("UTC", EveryDay(8 * 60, 20 * 60));
  const Window evening = Rules("UTC", EveryDay(18 * 60, 23 * 60));
  const auto at = [&](int hour) { return At(day.zone, absl::CivilMinute(2026, 6, 3, hour, 0)); };
  ExpectStanding(StandingAt(All({day, evening}), at(12)), false, at(18));
  ExpectStanding(StandingAt(All({day, evening}), at(19)), true, at(20));
  EXPECT_EQ(StandingAt(All({day, evening}), at(12)).longest, absl::Hours(2));
}

TEST(Windows, AnEdgeThatHappensTwiceIsTheEarlierOne) {
  const Window rules = Rules("Europe/Berlin", EveryDay(60, 2 * 60 + 30));  // 02:30 twice on 2026-10-25
  const absl::Time open = At(rules.zone, absl::CivilMinute(2026, 10, 25, 1, 0));
  ExpectStanding(StandingAt(All({rules}), open), true, open + absl::Minutes(90));
}

TEST(Windows, AnEdgeInAHoleIsTheChange) {
  const Window rules = Rules("Europe/Berlin", EveryDay(2 * 60 + 30, 5 * 60));  // no 02:30 on 2026-03-29
  const absl::Time before = At(rules.zone, absl::CivilMinute(2026, 3, 29, 1, 0));
  ExpectStanding(StandingAt(All({rules}), before), false, before + absl::Hours(1));
}

TEST(Windows, ASpanInsideAHoleVanishes) {
  const Window rules = Rules("Europe/Berlin", EveryDay(2 * 60, 3 * 60));
  const absl::Time before = At(rules.zone, absl::CivilMinute(2026, 3, 29, 0, 0));
  EXPECT_EQ(*StandingAt(All({rules}), before).edge, At(rules.zone, absl::CivilMinute(2026, 3, 30, 2, 0)));
}

TEST(Windows, OpeningsAreListedAsFarAsAsked) {
  const Window days = Rules("UTC", EveryDay(8 * 60, 20 * 60));
  const absl::Time noon = At(days.zone, absl::CivilMinute(2026, 6, 3, 12, 0));
  const std::vector<Opening> openings = OpeningsAhead(All({days}), noon, absl::Hours(24 * 60));
  ASSERT_EQ(openings.size(), 61u);
  EXPECT_EQ(openings.back().opens, noon + absl::Hours(24 * 60 - 4));
}

// --- The oracle -----------------------------------------------------------------------------------

constexpr int kMinutesPerDay = 24 * 60;
constexpr int kDays = 14;
constexpr int kMinutes = kDays * kMinutesPerDay;

// The latest that the clock on the wall has shown up to each minute.
std::vector<absl::CivilMinute> Clock(const absl::TimeZone& zone, absl::Time start) {
  std::vector<absl::CivilMinute> shown;
  for (int i = 0; i < kMinutes; ++i) {
    const absl::CivilMinute now(zone.At(start + absl::Minutes(i)).cs);
    shown.push_back(shown.empty() ? now : std::max(now, shown.back()));
  }
  return shown;
}

// The first minute that shows `local` or later.
int FirstShowing(const std::vector<absl::CivilMinute>& clock, absl::CivilMinute local) {
  return static_cast<int>(std::lower_bound(clock.begin(), clock.end(), local) - clock.begin());
}

std::vector<bool> OpenMinutes(const Window& rules, const std::vector<absl::CivilMinute>& clock) {
  std::vector<bool> open(kMinutes, false);
  for (absl::CivilDay day = absl::CivilDay(clock.front()) - 2; day <= absl::CivilDay(clock.back()); ++day) {
    for (const OpenInterval& span : rules.open) {
      if (static_cast<int>(absl::GetWeekday(day)) != span.weekday) continue;
      const absl::CivilMinute opens = absl::CivilMinute(day) + span.from_minute;
      absl::CivilMinute closes = absl::CivilMinute(day) + span.to_minute;
      if (closes <= opens) closes += kMinutesPerDay;
      const int end = FirstShowing(clock, closes);
      for (int i = FirstShowing(clock, opens); i < end; ++i) open[static_cast<size_t>(i)] = true;
    }
  }
  return open;
}

Window RandomRules(const std::string& zone, std::mt19937& random) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<OpenInterval> hours;
  const int count = draw(1, 10);
  for (int i = 0; i < count; ++i) {
    OpenInterval span{draw(0, 6), draw(0, kMinutesPerDay - 1), draw(1, kMinutesPerDay)};
    if (draw(0, 2) == 0) span.from_minute = draw(0, 8) * 30;  // where clocks change
    if (draw(0, 2) == 0) span.to_minute = draw(1, 8) * 30;
    if (span.from_minute == span.to_minute) ++span.to_minute;
    hours.push_back(span);
  }
  return Rules(zone, std::move(hours));
}

void Compare(const std::string& zone, absl::Time start, const std::vector<absl::CivilMinute>& clock,
             const Window& rules) {
  const std::vector<bool> open = OpenMinutes(rules, clock);
  const auto intervals = Openings(rules, start, start + absl::Minutes(kMinutes));
  // The first three days are the run-up of hours that began before them.
  size_t next = 0;
  for (int i = 3 * kMinutesPerDay; i < kMinutes; ++i) {
    const absl::Time at = start + absl::Minutes(i);
    while (next < intervals.size() && intervals[next].closes <= at) ++next;
    const bool said = next < intervals.size() && intervals[next].opens <= at;
    ASSERT_EQ(said, open[static_cast<size_t>(i)]) << zone << " " << at;
  }
  for (int i = 3 * kMinutesPerDay; i < 6 * kMinutesPerDay; i += 37) {
    const WindowStanding standing = StandingAt(All({rules}), start + absl::Minutes(i));
    ASSERT_EQ(standing.open, open[static_cast<size_t>(i)]) << zone << " " << start + absl::Minutes(i);
    int edge = i;
    while (edge < kMinutes && open[static_cast<size_t>(edge)] == standing.open) ++edge;
    if (edge == kMinutes) continue;
    ASSERT_EQ(standing.edge, start + absl::Minutes(edge)) << zone << " " << start + absl::Minutes(i);
  }
}

struct Years {
  const char* zone;
  int first;
  int last;
};

class WindowsOracle : public ::testing::TestWithParam<Years> {};

TEST_P(WindowsOracle, AgreesAroundEveryTransition) {
  const auto& [name, first, last] = GetParam();
  const absl::TimeZone zone = Named(name);
  std::mt19937 random(static_cast<unsigned>(first + last));
  absl::Time at = absl::FromCivil(absl::CivilSecond(first, 1, 1), absl::UTCTimeZone());
  const absl::Time end = absl::FromCivil(absl::CivilSecond(last + 1, 1, 1), absl::UTCTimeZone());
  int transitions = 0;
  absl::TimeZone::CivilTransition transition;
  while (zone.NextTransition(at, &transition)) {
    at = zone.At(transition.from).trans;
    if (at >= end) break;
    ++transitions;
    const absl::Time start = at - absl::Hours(24 * 4);
    const std::vector<absl::CivilMinute> clock = Clock(zone, start);
    for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(Compare(name, start, clock, RandomRules(name, random)));
  }
  EXPECT_GE(transitions, 2);
}

INSTANTIATE_TEST_SUITE_P(Zones, WindowsOracle,
                         ::testing::Values(Years{"America/New_York", 2024, 2035}, Years{"Europe/Berlin", 2024, 2035},
                                           Years{"Europe/Dublin", 2024, 2035}, Years{"Australia/Lord_Howe", 2024, 2035},
                                           Years{"Africa/Casablanca", 2024, 2035},
                                           Years{"America/Sao_Paulo", 2016, 2018}, Years{"Pacific/Apia", 2011, 2011}),
                         [](const auto& param) {
                           std::string name = param.param.zone;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '/' || c == '_'; }, 'X');
                           return name;
                         });

}  // namespace
}  // namespace tp::core
