#include "base/duration.h"

#include <random>

#include <gtest/gtest.h>

namespace tp {
namespace {

TEST(Duration, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<const char*, absl::Duration>> cases = {
      {"0s", absl::ZeroDuration()},
      {"30s", absl::Seconds(30)},
      {"10m", absl::Minutes(10)},
      {"2h30m", absl::Minutes(150)},
      {"1d", absl::Hours(24)},
      {"1d2h3m4s5ms", absl::Hours(26) + absl::Minutes(3) + absl::Milliseconds(4005)},
      {"500ms", absl::Milliseconds(500)},
      {"90m", absl::Minutes(90)},
      {"007s", absl::Seconds(7)},
      {"3650d", absl::Hours(24 * 3650)},
  };
  for (const auto& [text, duration] : cases) {
    const auto parsed = ParseDuration(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, duration) << text;
  }
}

TEST(Duration, RefusesWhatIsAmbiguousOrWrong) {
  for (const char* text : {"",      "10",   "s",     "1.5h", "-5s", "5 s",  " 5s", "5s ", "5S",    "5sec",
                           "30m2h", "5s5s", "5s10m", "1h1h", "5m5", "++5s", "inf", "1w",  "5ms1s", "\n"}) {
    const auto parsed = ParseDuration(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Message(ParseDuration("soon").status()),
            "'soon' is not a duration: write numbers with units d, h, m, s or ms, such as 30s or 2h30m");
}

TEST(Duration, HasAnEndBeforeItOverflows) {
  for (const char* text : {"3651d", "3650d1ms", "9223372036854775807ms", "9223372036854775807d",
                           "99999999999999999999999999h", "106751991167300d"}) {
    EXPECT_EQ(Message(ParseDuration(text).status()), std::string("'") + text + "' is too long: at most 3650d");
  }
}

TEST(Duration, TextReadsBackToTheSame) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 10'000; ++round) {
    const absl::Duration duration = absl::Milliseconds(static_cast<int64_t>(random() % (kLongestDurationMs + 1)));
    const auto parsed = ParseDuration(DurationText(duration));
    ASSERT_TRUE(parsed.ok()) << DurationText(duration);
    ASSERT_EQ(*parsed, duration);
  }
}

}  // namespace
}  // namespace tp
