// What follows from a try.
#include "notify/retry.h"

#include <gtest/gtest.h>

namespace tp::notify {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr uint64_t kNoJitter = 0;
constexpr uint64_t kMostJitter = 1023;

TryResult Failed() { return {.outcome = TryOutcome::kFailed, .why = "x"}; }

absl::Duration PauseOf(const Verdict& verdict, absl::Time now) {
  const TryAgain* again = std::get_if<TryAgain>(&verdict);
  return again == nullptr ? absl::InfiniteDuration() : again->at - now;
}

struct Answer {
  int64_t status;
  TryOutcome outcome;
};

TEST(ResultOfHttp, SaysWhetherAnotherTryMayHelp) {
  for (const Answer& answer :
       std::vector<Answer>{{200, TryOutcome::kTaken},   {204, TryOutcome::kTaken},   {299, TryOutcome::kTaken},
                           {101, TryOutcome::kFailed},  {301, TryOutcome::kFailed},  {302, TryOutcome::kFailed},
                           {400, TryOutcome::kRefused}, {401, TryOutcome::kRefused}, {404, TryOutcome::kRefused},
                           {408, TryOutcome::kFailed},  {410, TryOutcome::kRefused}, {413, TryOutcome::kRefused},
                           {429, TryOutcome::kFailed},  {499, TryOutcome::kRefused}, {500, TryOutcome::kFailed},
                           {503, TryOutcome::kFailed},  {599, TryOutcome::kFailed},  {0, TryOutcome::kFailed},
                           {999, TryOutcome::kFailed},  {-1, TryOutcome::kFailed}}) {
    const TryResult result = ResultOfHttp(answer.status, absl::ZeroDuration());
    EXPECT_EQ(result.outcome, answer.outcome) << answer.status;
    EXPECT_EQ(result.why.empty(), answer.outcome == TryOutcome::kTaken) << answer.status;
  }
}

TEST(ResultOfHttp, BelievesTheReceiversWishWithinReason) {
  EXPECT_EQ(ResultOfHttp(429, absl::Seconds(7)).retry_after, absl::Seconds(7));
  EXPECT_EQ(ResultOfHttp(429, absl::Hours(100)).retry_after, kLongestPause);
  EXPECT_EQ(ResultOfHttp(503, absl::Seconds(-5)).retry_after, absl::ZeroDuration());
}

TEST(AfterTry, PausesDoubleToAnHour) {
  for (const auto& [tries, seconds] : std::vector<std::pair<int32_t, int64_t>>{
           {1, 1}, {2, 2}, {3, 4}, {11, 1024}, {12, 2048}, {13, 3600}, {14, 3600}, {1'000'000, 3600}}) {
    EXPECT_EQ(PauseOf(AfterTry(Failed(), tries, kStart, kStart, kNoJitter), kStart), absl::Seconds(seconds)) << tries;
    const absl::Duration least = PauseOf(AfterTry(Failed(), tries, kStart, kStart, kMostJitter), kStart);
    EXPECT_GE(least, absl::Seconds(seconds) / 2) << tries;
    EXPECT_LT(least, absl::Seconds(seconds) * 0.51) << tries;
  }
}

TEST(AfterTry, WaitsAsLongAsTheReceiverWants) {
  TryResult busy = Failed();
  busy.retry_after = absl::Minutes(5);
  EXPECT_EQ(PauseOf(AfterTry(busy, 1, kStart, kStart, kNoJitter), kStart), absl::Minutes(5));
}

TEST(AfterTry, EndsWhereItShould) {
  EXPECT_EQ(AfterTry({.outcome = TryOutcome::kTaken}, 1, kStart, kStart, 0), Verdict(Delivered{}));
  EXPECT_EQ(AfterTry({.outcome = TryOutcome::kRefused}, 1, kStart, kStart, 0), Verdict(GivenUp{}));
  const absl::Time last = kStart + kPatience;
  EXPECT_EQ(AfterTry(Failed(), 40, kStart, last, 0), Verdict(GivenUp{}));
  EXPECT_EQ(PauseOf(AfterTry(Failed(), 40, kStart, last - absl::Seconds(1), kNoJitter), last - absl::Seconds(1)),
            kLongestPause);
}

TEST(IsDue, NeverWaitsForAClockThatWentBack) {
  EXPECT_TRUE(IsDue(kStart, kStart));
  EXPECT_FALSE(IsDue(kStart + absl::Seconds(1), kStart));
  EXPECT_FALSE(IsDue(kStart + kLongestPause, kStart));
  EXPECT_TRUE(IsDue(kStart + absl::Hours(24), kStart));
}

}  // namespace
}  // namespace tp::notify
