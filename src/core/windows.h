// When jobs may run (DESIGN 6, windows): weekly hours in a time zone, turned into instants. Pure.
//
// A local edge maps to one instant: the first moment at which the zone's clock shows that time or a later
// one. So an edge that a clock change repeats is the earlier of the two, and one that it skips is the
// change itself. Intervals that are empty by that vanish, and those that touch are one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

// [opens, closes)
struct Opening {
  absl::Time opens;
  absl::Time closes;
  bool operator==(const Opening&) const = default;
};

// All openings of one window that touch [from, to), in order, apart from each other. Those at the ends are
// whole as far as a week beyond them tells.
std::vector<Opening> Openings(const Window& window, absl::Time from, absl::Time to);

// The windows that count for jobs of one series: those that name the profile, else those for all of the
// series. It is open while any of them is.
struct SeriesHours {
  std::string series;
  std::vector<Window> windows;                // at least one
  std::optional<absl::Time> held_open_until;  // by an admin
  bool operator==(const SeriesHours&) const = default;
};

// What counts for a job: all of its series have to be open. Empty: always open.
using Schedule = std::vector<SeriesHours>;

using HeldOpen = std::map<std::string, absl::Time>;  // series -> until when

Schedule ScheduleOf(const Registry& registry, const ResolvedShape& shape, const HeldOpen& held_open);

// The strictest of all windows that count.
absl::Duration PauseGrace(const Schedule& schedule);
absl::Duration MinRemaining(const Schedule& schedule);

// What holds at one moment.
struct WindowStanding {
  bool open = true;
  std::optional<absl::Time> edge;  // the next opening or closing; none: it stays as it is for good
  // The longest time that a job may run through from now on; infinite where it never closes.
  absl::Duration longest = absl::InfiniteDuration();
  bool operator==(const WindowStanding&) const = default;
};

// The openings of all of a schedule together for some weeks, worked out once for many looks.
struct Calendar {
  std::vector<Opening> openings;
  absl::Time from;
  absl::Time until;  // an opening that reaches it goes on
  bool always = false;

  // Good for looks at `at`: later than it was made for by less than a day.
  bool Serves(absl::Time at) const { return from <= at && at < from + absl::Hours(24); }
};
Calendar CalendarOf(const Schedule& schedule, absl::Time at);

WindowStanding StandingIn(const Calendar& calendar, absl::Time at);
inline WindowStanding StandingAt(const Schedule& schedule, absl::Time at) {
  return StandingIn(CalendarOf(schedule, at), at);
}

// Openings that touch [at, at + ahead).
std::vector<Opening> OpeningsAhead(const Schedule& schedule, absl::Time at, absl::Duration ahead);

// How much of the opening a job needs to be let in: its remaining time limit where that fits an opening,
// else MinRemaining.
absl::Duration NeededOpen(const Schedule& schedule, const WindowStanding& standing,
                          std::optional<absl::Duration> remaining_limit);

}  // namespace tp::core
