#include "core/step.h"

#include <fmt/format.h>

#include "core/judge.h"

namespace tp::core {
namespace {

// 45s, 3m, 2h, 5d: the largest unit, rounded down.
std::string Age(absl::Duration age) {
  if (age < absl::Minutes(1)) return fmt::format("{}s", std::max<int64_t>(0, absl::ToInt64Seconds(age)));
  if (age < absl::Hours(1)) return fmt::format("{}m", absl::ToInt64Minutes(age));
  if (age < absl::Hours(48)) return fmt::format("{}h", absl::ToInt64Hours(age));
  return fmt::format("{}d", absl::ToInt64Hours(age) / 24);
}

std::string EndingText(const Attempt& attempt) {
  switch (attempt.ending->cause) {
    case EndCause::kFinished:
    case EndCause::kRankFailed:
    case EndCause::kEvicted:
    case EndCause::kRankLost:
    case EndCause::kEngine:
      return fmt::format("ending, {}", DescribeExit(attempt));
    case EndCause::kStop:
      return "stopping";
    case EndCause::kPause:
      return "pausing";
    case EndCause::kWindow:
      return "its window closed";
    case EndCause::kTimeLimit:
      return "ending, time limit";
    case EndCause::kStartTimeout:
      return "ending, start timeout";
    case EndCause::kPendingTimeout:
    case EndCause::kRejected:
    case EndCause::kRefused:
    case EndCause::kAbsent:
      return "withdrawing";
  }
  return "";
}

}  // namespace

std::string_view Name(EndCause cause) {
  switch (cause) {
    case EndCause::kFinished:
      return "finished";
    case EndCause::kRankFailed:
      return "rank_failed";
    case EndCause::kEvicted:
      return "evicted";
    case EndCause::kRankLost:
      return "rank_lost";
    case EndCause::kEngine:
      return "engine";
    case EndCause::kStop:
      return "stop";
    case EndCause::kPause:
      return "pause";
    case EndCause::kWindow:
      return "window";
    case EndCause::kTimeLimit:
      return "time_limit";
    case EndCause::kStartTimeout:
      return "start_timeout";
    case EndCause::kPendingTimeout:
      return "pending_timeout";
    case EndCause::kRejected:
      return "rejected";
    case EndCause::kRefused:
      return "refused";
    case EndCause::kAbsent:
      return "absent";
  }
  return "";
}

int64_t ResolvedShape::cards() const {
  int64_t sum = 0;
  for (const PoolShape& pool : pools) sum += pool.cards();
  return sum;
}

int64_t Attempt::cards() const {
  int64_t sum = 0;
  for (const PoolPlacement& pool : placement) sum += pool.cards();
  return sum;
}

std::string StateText(const Step& step, absl::Time now) {
  std::string text(Name(step.state));
  if (!step.attempt) return text;
  const Attempt& attempt = *step.attempt;
  if (attempt.ending) text += fmt::format(" ({})", EndingText(attempt));
  if (attempt.sight.unknown_since) {
    const absl::Time seen = attempt.sight.last_seen.value_or(attempt.created_at);
    text += fmt::format(", last seen {} ago: {}", Age(now - seen), attempt.sight.unknown_why);
  }
  return text;
}

}  // namespace tp::core
