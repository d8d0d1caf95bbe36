#include "cli/render/windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/render/color.h"
#include "cli/render/fields.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

// Times are told in the zone of the first rule.
std::string ZoneOf(const v1::WindowHours& hours) { return hours.rules_size() > 0 ? hours.rules(0).zone() : "UTC"; }

// `open, closes Tue 1 Dec 07:00 Europe/Berlin (in 3h)`
std::string EdgeText(const v1::WindowHours& hours, bool held, absl::Time now) {
  if (!hours.has_next_edge()) return hours.open() ? "always open" : "always closed";
  const std::string_view state = held ? "held open" : hours.open() ? "open" : "closed";
  return fmt::format("{}, {} {}", state, hours.open() ? "closes" : "opens",
                     ZonedTime(FromProto(hours.next_edge()), ZoneOf(hours), now));
}

std::string Name(const v1::SeriesWindows& windows, const v1::WindowHours& hours) {
  if (hours.profiles().empty()) return windows.series();
  return fmt::format("{} ({})", windows.series(), fmt::join(hours.profiles(), ", "));
}

std::string RuleText(const v1::WindowRule& rule) {
  return fmt::format("{} {}", rule.hours().empty() ? "never" : rule.hours(), rule.zone());
}

std::string JobsText(const v1::WindowRule& rule) {
  return fmt::format("start with {} or their time limit left, get {} to save their work when it closes",
                     ShortDuration(FromProto(rule.min_remaining())), ShortDuration(FromProto(rule.grace())));
}

std::string OpeningText(const v1::WindowOpening& opening, const std::string& zone, absl::Time now) {
  const absl::Time opens = FromProto(opening.opens_at());
  const absl::Time closes = FromProto(opening.closes_at());
  return fmt::format("{:<16} - {}  {:>6}", opens <= now ? "now" : ClockText(opens, zone), ClockText(closes, zone),
                     ShortDuration(closes - opens));
}

std::string HoursBlock(const v1::SeriesWindows& windows, const v1::WindowHours& hours, const Terminal& terminal,
                       absl::Time now) {
  const std::string name = Paint(EscapeControl(Name(windows, hours)), Color::kBold, terminal.colors);
  const std::string edge = EscapeControl(EdgeText(hours, windows.has_held_open_until(), now));
  std::string block =
      fmt::format("{}  {}\n", name, Paint(edge, hours.open() ? Color::kGreen : Color::kYellow, terminal.colors));
  Fields fields(2, terminal, 6);
  for (const v1::WindowRule& rule : hours.rules()) {
    fields.Add(&rule == &hours.rules(0) ? "hours" : "and", RuleText(rule));
    if (hours.has_next_edge()) fields.Add("jobs", JobsText(rule));
  }
  if (hours.has_next_edge()) {
    for (const v1::WindowOpening& opening : hours.openings()) {
      fields.Add(&opening == &hours.openings(0) ? "ahead" : "", OpeningText(opening, ZoneOf(hours), now));
    }
  }
  return block + fields.text();
}

}  // namespace

std::vector<std::string> WindowSentences(const v1::SeriesWindows& windows, absl::Time now) {
  std::vector<std::string> sentences;
  for (const v1::WindowHours& hours : windows.hours()) {
    sentences.push_back(
        fmt::format("{}: {}", Name(windows, hours), EdgeText(hours, windows.has_held_open_until(), now)));
  }
  return sentences;
}

std::string WindowPage(const v1::ListWindowsResponse& response, const Terminal& terminal, absl::Time now) {
  std::string page;
  for (const v1::SeriesWindows& windows : response.series()) {
    for (const v1::WindowHours& hours : windows.hours()) {
      page += (page.empty() ? "" : "\n") + HoursBlock(windows, hours, terminal, now);
    }
  }
  return page;
}

}  // namespace tp::cli
