// What follows from a try to deliver a message. Pure: time and chance are passed in.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/time/time.h"

namespace tp::notify {

enum class TryOutcome : uint8_t {
  kTaken,
  kRefused,    // no other try would change it
  kFailed,     // another one may
  kCancelled,  // tpd ends, or the receiver changed; whether it arrived is not known
};

struct TryResult {
  TryOutcome outcome = TryOutcome::kFailed;
  std::string why = {};                               // empty where it was taken; no secret, no url
  absl::Duration retry_after = absl::ZeroDuration();  // the receiver's wish, of kFailed
  bool operator==(const TryResult&) const = default;
};

// What an HTTP status means. 4xx is refused but for 408 and 429; redirects are not followed.
TryResult ResultOfHttp(int64_t status, absl::Duration retry_after);

struct Delivered {
  bool operator==(const Delivered&) const = default;
};
struct TryAgain {
  absl::Time at;
  bool operator==(const TryAgain&) const = default;
};
struct GivenUp {
  bool operator==(const GivenUp&) const = default;
};
using Verdict = std::variant<Delivered, TryAgain, GivenUp>;

// From the first try to the last one.
inline constexpr absl::Duration kPatience = absl::Hours(24);
inline constexpr absl::Duration kLongestPause = absl::Hours(1);

// After try number `tries` (from 1) of a message that waits since `created_at`. The pause doubles from one second
// to an hour; `random` takes up to half of it off, so that many messages do not come back at once.
Verdict AfterTry(const TryResult& result, int32_t tries, absl::Time created_at, absl::Time now, uint64_t random);

// Whether the next try is due. One that lies too far ahead was set on a clock that has gone back since.
bool IsDue(absl::Time next_try_at, absl::Time now);

}  // namespace tp::notify
