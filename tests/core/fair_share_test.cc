#include "core/fair_share.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

TEST(FairShare, WhatWasUsedCountsHalfAfterAHalfLife) {
  const absl::Time start = absl::FromUnixSeconds(1'800'000'000);
  FairShare shares(absl::Hours(1));
  EXPECT_TRUE(shares.At(start).empty());
  shares.Hold("ann", 8, start);
  shares.Hold("ann", -8, start + absl::Seconds(1));
  const double used = shares.At(start + absl::Seconds(1)).at("ann");
  EXPECT_NEAR(used, 8, 0.01);
  EXPECT_NEAR(shares.At(start + absl::Seconds(1) + absl::Hours(1)).at("ann"), used / 2, 1e-9);
}

TEST(FairShare, WhatIsHeldGrowsTheSameInOneLookOrMany) {
  const absl::Time start = absl::FromUnixSeconds(1'800'000'000);
  FairShare once(absl::Hours(1));
  FairShare often(absl::Hours(1));
  once.Hold("ann", 4, start);
  often.Hold("ann", 4, start);
  for (int minute = 1; minute <= 180; ++minute) often.Hold("ann", 0, start + absl::Minutes(minute));
  const absl::Time end = start + absl::Minutes(180);
  EXPECT_NEAR(once.At(end).at("ann"), often.At(end).at("ann"), 1e-6);
  EXPECT_LT(once.At(end).at("ann"), 4 * 3600 * 3);
}

}  // namespace
}  // namespace tp::core
