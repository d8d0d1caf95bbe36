#include "notify/retry.h"

#include <algorithm>

#include <fmt/format.h>

namespace tp::notify {
namespace {

constexpr int32_t kMostDoublings = 12;  // beyond kLongestPause
constexpr uint64_t kJitterSteps = 1024;

absl::Duration PauseAfter(int32_t tries, uint64_t random) {
  const int32_t doublings = std::clamp(tries - 1, 0, kMostDoublings);
  const absl::Duration full = std::min(absl::Seconds(int64_t{1} << doublings), kLongestPause);
  return full - full / 2 * (static_cast<double>(random % kJitterSteps) / kJitterSteps);
}

}  // namespace

TryResult ResultOfHttp(int64_t status, absl::Duration retry_after) {
  if (status >= 200 && status < 300) return {.outcome = TryOutcome::kTaken};
  TryResult result;
  result.why = fmt::format("it answers {}", status);
  if (status >= 300 && status < 400) result.why += ": redirects are not followed";
  const bool refused = status >= 400 && status < 500 && status != 408 && status != 429;
  if (refused) {
    result.outcome = TryOutcome::kRefused;
  } else {
    result.retry_after = std::clamp(retry_after, absl::ZeroDuration(), kLongestPause);
  }
  return result;
}

Verdict AfterTry(const TryResult& result, int32_t tries, absl::Time created_at, absl::Time now, uint64_t random) {
  switch (result.outcome) {
    case TryOutcome::kTaken:
      return Delivered{};
    case TryOutcome::kRefused:
      return GivenUp{};
    case TryOutcome::kCancelled:
      return TryAgain{now};
    case TryOutcome::kFailed:
      if (now - created_at >= kPatience) return GivenUp{};
      return TryAgain{now + std::max(PauseAfter(tries, random), result.retry_after)};
  }
  return GivenUp{};
}

bool IsDue(absl::Time next_try_at, absl::Time now) {
  return next_try_at <= now || next_try_at > now + 2 * kLongestPause;
}

}  // namespace tp::notify
