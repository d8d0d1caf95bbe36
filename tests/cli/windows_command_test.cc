#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "cli/render/time.h"
#include "cli/render/windows.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

absl::Time At(const std::string& rfc3339) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, rfc3339, &time, &error)) << error;
  return time;
}

v1::SeriesWindows Nights() {
  v1::SeriesWindows windows;
  windows.set_series("h200");
  v1::WindowHours& hours = *windows.add_hours();
  v1::WindowRule& rule = *hours.add_rules();
  rule.set_zone("Europe/Berlin");
  rule.set_hours("Mon-Fri 19:00-07:00");
  rule.mutable_grace()->set_seconds(300);
  rule.mutable_min_remaining()->set_seconds(1800);
  hours.set_open(true);
  *hours.mutable_next_edge() = ToProto(At("2026-12-01T06:00:00Z"));
  v1::WindowOpening& now = *hours.add_openings();
  *now.mutable_opens_at() = ToProto(At("2026-11-30T18:00:00Z"));
  *now.mutable_closes_at() = ToProto(At("2026-12-01T06:00:00Z"));
  v1::WindowOpening& next = *hours.add_openings();
  *next.mutable_opens_at() = ToProto(At("2026-12-01T18:00:00Z"));
  *next.mutable_closes_at() = ToProto(At("2026-12-02T06:00:00Z"));
  return windows;
}

class WindowPageTest : public testing::Test {
 protected:
  std::string Page(const v1::SeriesWindows& windows) {
    v1::ListWindowsResponse response;
    *response.add_series() = windows;
    return WindowPage(response, Terminal{}, now_);
  }

  const absl::Time now_ = At("2026-12-01T03:00:00Z");
};

TEST_F(WindowPageTest, TheEdgeHereAndThereAndWhatComes) {
  EXPECT_EQ(Page(Nights()),
            "h200  open, closes Tue 1 Dec 07:00 Europe/Berlin (06:00 here, in 3h)\n"
            "  hours  Mon-Fri 19:00-07:00 Europe/Berlin\n"
            "  jobs   start with 30m or their time limit left, get 5m to save their work when it closes\n"
            "  ahead  now              - Tue  1 Dec 07:00     12h\n"
            "         Tue  1 Dec 19:00 - Wed  2 Dec 07:00     12h\n");
}

TEST_F(WindowPageTest, HeldOpenForSomeProfilesAndForGood) {
  v1::SeriesWindows windows = Nights();
  windows.mutable_hours(0)->add_profiles("short");
  windows.mutable_hours(0)->add_profiles("debug");
  *windows.mutable_held_open_until() = windows.hours(0).next_edge();
  EXPECT_THAT(Page(windows), HasSubstr("h200 (short, debug)  held open, closes Tue 1 Dec 07:00"));
  windows.clear_held_open_until();
  windows.mutable_hours(0)->clear_next_edge();
  EXPECT_THAT(Page(windows), HasSubstr("h200 (short, debug)  always open\n"));
  EXPECT_THAT(Page(windows), testing::Not(HasSubstr("ahead")));
  windows.mutable_hours(0)->set_open(false);
  EXPECT_THAT(Page(windows), HasSubstr("always closed\n"));
}

TEST_F(WindowPageTest, AnUnknownZoneIsToldInUtc) {
  v1::SeriesWindows windows = Nights();
  windows.mutable_hours(0)->mutable_rules(0)->set_zone("Mars/\x1b[2J");
  EXPECT_THAT(Page(windows), HasSubstr("closes Tue 1 Dec 06:00 UTC (in 3h)"));
  EXPECT_THAT(Page(windows), testing::Not(HasSubstr("\x1b")));
}

class WindowsCommandTest : public CommandTest {
 protected:
  WindowsCommandTest() {
    server_.script().windows = {Nights()};
    server_.script().note = "h200 is held open";
  }
};

TEST_F(WindowsCommandTest, AsksAsTold) {
  ASSERT_EQ(Tp({"windows", "h200", "--days", "21"}).exit_code, 0);
  EXPECT_EQ(server_.asked().windows.at(0).series(), "h200");
  EXPECT_EQ(server_.asked().windows.at(0).days(), 21);
  EXPECT_EQ(Tp({"windows", "-o", "name"}).out, "h200\n");
  EXPECT_EQ(json::parse(Tp({"windows", "-o", "json"}).out)["series"][0]["hours"][0]["rules"][0]["min_remaining"],
            "1800s");
  EXPECT_EQ(Tp({"windows", "--days", "63"}).exit_code, 2);
}

TEST_F(WindowsCommandTest, WithoutAnySaysSo) {
  server_.script().windows.clear();
  EXPECT_EQ(Tp({"windows"}).err, "no series has windows: all are always open\n");
  EXPECT_EQ(Tp({"windows", "a100"}).err, "a100 has no windows: it is always open\n");
}

TEST_F(WindowsCommandTest, StatusNamesThem) {
  EXPECT_THAT(Tp({"status"}).out,
              HasSubstr("\nwindows  h200: open, closes Tue 1 Dec 07:00 Europe/Berlin (06:00 here, "));
  EXPECT_EQ(json::parse(Tp({"status", "-o", "json"}).out)["windows"][0]["series"], "h200");
}

TEST_F(WindowsCommandTest, HoldsOpenForAWhile) {
  const Finished tp = Tp({"admin", "window", "hold-open", "h200", "--for", "3h"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.err, "h200 is held open\n");
  const v1::HoldWindowOpenRequest request = server_.asked().holds.at(0);
  EXPECT_EQ(request.series(), "h200");
  const absl::Duration ahead = FromProto(request.until()) - absl::Now();
  EXPECT_GT(ahead, absl::Hours(3) - absl::Minutes(2));
  EXPECT_LT(ahead, absl::Hours(3) + absl::Seconds(1));
}

TEST_F(WindowsCommandTest, HoldsOpenUntilOrNoLonger) {
  ASSERT_EQ(Tp({"admin", "window", "hold-open", "h200", "--until", "2036-01-01"}).exit_code, 0);
  EXPECT_EQ(server_.asked().holds.at(0).until().seconds(), 2'082'758'400);
  ASSERT_EQ(Tp({"admin", "window", "hold-open", "h200", "--end"}).exit_code, 0);
  EXPECT_FALSE(server_.asked().holds.at(1).has_until());
}

TEST_F(WindowsCommandTest, RefusesBeforeItAsks) {
  EXPECT_THAT(Tp({"admin", "window", "hold-open", "h200"}).err, HasSubstr("say for how long: --for 3h"));
  EXPECT_EQ(Tp({"admin", "window", "hold-open", "h200", "--for", "3h", "--end"}).exit_code, 2);
  EXPECT_EQ(Tp({"admin", "window", "hold-open", "h200", "--for", "0h"}).exit_code, 2);
  EXPECT_EQ(Tp({"admin", "window", "hold-open"}).exit_code, 2);
  EXPECT_TRUE(server_.asked().holds.empty());
}

}  // namespace
}  // namespace tp::cli
