// WindowService over the wire, and how windows are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/window_hours.h"
#include "sample_registry.h"
#include "server_fixture.h"
#include "tp/v1/window.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using store::Role;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kHour = 60;

std::vector<core::OpenInterval> Nights() {
  std::vector<core::OpenInterval> open;
  for (int day = 0; day < 5; ++day) open.push_back({.weekday = day, .from_minute = 19 * kHour, .to_minute = 7 * kHour});
  open.push_back({.weekday = 5, .from_minute = 0, .to_minute = 24 * kHour});
  return open;
}

absl::TimeZone Berlin() {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone("Europe/Berlin", &zone));
  return zone;
}

core::Window NightsInBerlin() {
  core::Window window;
  window.zone = Berlin();
  window.open = Nights();
  return window;
}

absl::Time At(const std::string& civil) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%d %H:%M", civil, Berlin(), &time, &error)) << error;
  return time;
}

core::Registry RegistryWithNights() {
  core::Registry registry = SampleRegistry();
  registry.series["h200"].windows = {NightsInBerlin()};
  return registry;
}

TEST(HoursTextTest, NeighbouringDaysAreOne) {
  EXPECT_EQ(HoursText(Nights()), "Mon-Fri 19:00-07:00, Sat 00:00-24:00");
  EXPECT_EQ(HoursText({{.weekday = 0, .from_minute = 60, .to_minute = 90},
                       {.weekday = 0, .from_minute = 120, .to_minute = 150},
                       {.weekday = 1, .from_minute = 60, .to_minute = 90},
                       {.weekday = 3, .from_minute = 60, .to_minute = 90}}),
            "Mon-Tue 01:00-01:30, Mon 02:00-02:30, Thu 01:00-01:30");
  EXPECT_EQ(HoursText({}), "");
}

TEST(DescribeWindowsTest, TheNextEdgeAndTheComingOpenings) {
  const core::Registry registry = RegistryWithNights();
  const absl::Time now = At("2026-11-30 12:00");  // a Monday
  const auto windows = DescribeWindows(registry, registry.series.at("h200"), {}, now, absl::Hours(48));
  EXPECT_EQ(windows.series(), "h200");
  EXPECT_FALSE(windows.has_held_open_until());
  ASSERT_EQ(windows.hours_size(), 1);
  const v1::WindowHours& hours = windows.hours(0);
  EXPECT_TRUE(hours.profiles().empty());
  EXPECT_FALSE(hours.open());
  EXPECT_EQ(hours.next_edge().seconds(), absl::ToUnixSeconds(At("2026-11-30 19:00")));
  ASSERT_EQ(hours.rules_size(), 1);
  EXPECT_EQ(hours.rules(0).zone(), "Europe/Berlin");
  ASSERT_EQ(hours.openings_size(), 2);
  EXPECT_EQ(hours.openings(0).opens_at().seconds(), absl::ToUnixSeconds(At("2026-11-30 19:00")));
  EXPECT_EQ(hours.openings(0).closes_at().seconds(), absl::ToUnixSeconds(At("2026-12-01 07:00")));
}

TEST(DescribeWindowsTest, HeldOpenIsOpenFromNowOn) {
  const core::Registry registry = RegistryWithNights();
  const absl::Time now = At("2026-11-30 12:00");
  const auto windows =
      DescribeWindows(registry, registry.series.at("h200"), {{"h200", now + absl::Hours(1)}}, now, absl::Hours(2));
  EXPECT_EQ(windows.held_open_until().seconds(), absl::ToUnixSeconds(now + absl::Hours(1)));
  EXPECT_TRUE(windows.hours(0).open());
  EXPECT_EQ(windows.hours(0).next_edge().seconds(), windows.held_open_until().seconds());
  EXPECT_EQ(windows.hours(0).openings(0).opens_at().seconds(), absl::ToUnixSeconds(now));
  const auto past = DescribeWindows(registry, registry.series.at("h200"), {{"h200", now}}, now, absl::Hours(2));
  EXPECT_FALSE(past.has_held_open_until()) << "a hold that is over is none";
}

TEST(DescribeWindowsTest, ProfilesWithWindowsOfTheirOwn) {
  core::Registry registry = RegistryWithNights();
  core::Window always = NightsInBerlin();
  always.profiles = {"h200-short", "h200-debug"};
  always.open = {};
  for (int day = 0; day < 7; ++day) always.open.push_back({.weekday = day, .from_minute = 0, .to_minute = 24 * kHour});
  registry.series["h200"].windows.push_back(always);
  const auto windows =
      DescribeWindows(registry, registry.series.at("h200"), {}, At("2026-11-30 12:00"), absl::Hours(24));
  ASSERT_EQ(windows.hours_size(), 2);
  EXPECT_TRUE(windows.hours(0).profiles().empty());
  EXPECT_THAT(windows.hours(1).profiles(), ElementsAre("h200-debug", "h200-short"));
  EXPECT_TRUE(windows.hours(1).open());
  EXPECT_FALSE(windows.hours(1).has_next_edge());
}

class WindowsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::WindowService::NewStub(channel());
    registry_ = RegistryWithNights();
    registry_.series["a100"].name = "a100";
  }

  std::unique_ptr<v1::WindowService::Stub> stub_;
};

TEST_F(WindowsTest, OnlySeriesThatHaveAny) {
  v1::ListWindowsRequest request;
  v1::ListWindowsResponse response;
  ASSERT_TRUE(stub_->ListWindows(As("ana", Role::kViewer).get(), request, &response).ok());
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_EQ(response.series(0).series(), "h200");
  request.set_series("a100");
  ASSERT_TRUE(stub_->ListWindows(As("ana", Role::kViewer).get(), request, &response).ok());
  EXPECT_EQ(response.series_size(), 0);
}

TEST_F(WindowsTest, RefusesWhatMakesNoSense) {
  v1::ListWindowsRequest request;
  v1::ListWindowsResponse response;
  request.set_series("h20");
  const grpc::Status status = stub_->ListWindows(As("ana").get(), request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("did you mean h200?"));
  request.clear_series();
  for (const int days : {-1, 63}) {
    request.set_days(days);
    EXPECT_EQ(DetailOf(stub_->ListWindows(As("ana").get(), request, &response)).field(), "days");
  }
}

TEST_F(WindowsTest, HoldingOpenGoesThroughTheLoop) {
  loop_.OnCommand([](const loop::Command&) -> absl::StatusOr<loop::Answer> {
    loop::Answer answer;
    answer.note = "held";
    return answer;
  });
  v1::HoldWindowOpenRequest request;
  request.set_request_id("r-1");
  request.set_series("h200");
  request.mutable_until()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(3)));
  v1::HoldWindowOpenResponse response;
  EXPECT_EQ(stub_->HoldWindowOpen(As("olga", Role::kOperator).get(), request, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->HoldWindowOpen(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_EQ(response.note(), "held");
  const auto hold = std::get<loop::HoldWindowOpen>(loop_.commands().at(0).action);
  EXPECT_EQ(hold.series, "h200");
  EXPECT_EQ(absl::ToUnixSeconds(*hold.until), request.until().seconds());
  request.set_request_id("r-2");
  request.clear_until();
  ASSERT_TRUE(stub_->HoldWindowOpen(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_FALSE(std::get<loop::HoldWindowOpen>(loop_.commands().at(1).action).until);
  request.mutable_until()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(24 * 400)));
  EXPECT_EQ(DetailOf(stub_->HoldWindowOpen(As("root", Role::kAdmin).get(), request, &response)).field(), "until");
  request.clear_series();
  EXPECT_EQ(DetailOf(stub_->HoldWindowOpen(As("root", Role::kAdmin).get(), request, &response)).field(), "series");
}

}  // namespace
}  // namespace tp::api
