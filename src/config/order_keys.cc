#include "config/order_keys.h"

namespace tp::config {

using core::Policy;
using decode::DurationBetween;
using decode::Key;

std::vector<decode::Field<Policy>> OrderKeys() {
  constexpr absl::Duration kDay = absl::Hours(24);
  constexpr absl::Duration kYear = absl::Hours(24 * 365);
  return {
      Key("aging", &Policy::aging, DurationBetween(absl::ZeroDuration(), kYear),
          "A waiting step's priority rises by one each time this has passed since its submission. 0s: never."),
      Key("aging_cap", &Policy::aging_cap, decode::SmallInteger(0, 100), "The most that aging adds to a priority."),
      Key("default_time_limit", &Policy::default_time_limit, DurationBetween(absl::Seconds(1), kYear),
          "How long a step without a time limit is taken to run, where one is planned around. Nothing is ended by "
          "it."),
      Key("fair_share", &Policy::fair_share, decode::Boolean(),
          "Of equal priorities those go first whose owners used less of the cards lately."),
      Key("fair_share_half_life", &Policy::fair_share_half_life, DurationBetween(absl::Minutes(1), kYear),
          "After this time, use counts half."),
      Key("min_flip", &Policy::min_flip, DurationBetween(absl::ZeroDuration(), kDay),
          "From a window's pause to its resume, at least."),
  };
}

}  // namespace tp::config
