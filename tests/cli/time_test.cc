#include "cli/render/time.h"

#include <limits>

#include <gtest/gtest.h>

namespace tp::cli {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1'796'025'612'345);

TEST(Rfc3339Test, IsUtcWithMilliseconds) { EXPECT_EQ(Rfc3339(kNow), "2026-11-30T08:00:12.345Z"); }

TEST(ShortDurationTest, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(ShortDuration(absl::Seconds(-5)), "0s");
  EXPECT_EQ(ShortDuration(absl::Seconds(59)), "59s");
  EXPECT_EQ(ShortDuration(absl::Seconds(754)), "12m");
  EXPECT_EQ(ShortDuration(absl::Minutes(200)), "3h20m");
  EXPECT_EQ(ShortDuration(absl::Hours(52)), "2d4h");
  EXPECT_EQ(ShortDuration(absl::Hours(48)), "2d");
}

TEST(RelativeTimeTest, KnowsPastAndFuture) {
  EXPECT_EQ(RelativeTime(kNow - absl::Minutes(3), kNow), "3m ago");
  EXPECT_EQ(RelativeTime(kNow + absl::Minutes(5), kNow), "in 5m");
  EXPECT_EQ(RelativeTime(kNow, kNow), "now");
}

TEST(GpuSecondsTest, IsExact) {
  EXPECT_EQ(GpuSeconds(12'345), "12.345");
  EXPECT_EQ(GpuSeconds(0), "0.000");
  EXPECT_EQ(GpuSeconds(-7), "-0.007");
  EXPECT_EQ(GpuSeconds(std::numeric_limits<int64_t>::max()), "9223372036854775.807");
  EXPECT_EQ(GpuSeconds(std::numeric_limits<int64_t>::min()), "-9223372036854775.808");
}

TEST(GpuTimeTest, RoundsForTables) {
  EXPECT_EQ(GpuTime(12'345), "12.3s");
  EXPECT_EQ(GpuTime(3'720'000), "1h2m");
}

TEST(ParseTimeSpanTest, NeedsUnits) {
  EXPECT_EQ(*ParseTimeSpan("90s", "--x"), absl::Seconds(90));
  EXPECT_EQ(*ParseTimeSpan("2h30m", "--x"), absl::Minutes(150));
  EXPECT_EQ(*ParseTimeSpan("2d", "--x"), absl::Hours(48));
  for (const char* wrong : {"", "90", "-1h", "1w", "h", "0s", "1h 2m", "1.5h", "99999999999999999999s"}) {
    EXPECT_FALSE(ParseTimeSpan(wrong, "--x").ok()) << wrong;
  }
}

TEST(ParseInstantTest, TakesDaysRfc3339AndSpans) {
  EXPECT_EQ(Rfc3339(*ParseInstant("2026-11-30", "--from", kNow)), "2026-11-30T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(*ParseInstant("2026-11-30T09:00:00+01:00", "--from", kNow)), "2026-11-30T08:00:00.000Z");
  EXPECT_EQ(*ParseInstant("36h", "--from", kNow), kNow - absl::Hours(36));
  EXPECT_FALSE(ParseInstant("yesterday", "--from", kNow).ok());
}

TEST(ProtoTimeTest, RoundTrips) {
  EXPECT_EQ(FromProto(ToProto(kNow)), kNow);
  const absl::Time before_1970 = absl::FromUnixMillis(-1500);
  EXPECT_EQ(FromProto(ToProto(before_1970)), before_1970);
  EXPECT_EQ(FromProto(ToProto(absl::Milliseconds(1500))), absl::Milliseconds(1500));
}

}  // namespace
}  // namespace tp::cli
