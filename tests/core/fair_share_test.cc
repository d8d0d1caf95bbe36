// Use that decays.
#include "core/fair_share.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::core {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::Duration kWeek = absl::Hours(24 * 7);

absl::Time At(absl::Duration since) { return absl::FromUnixSeconds(1'767'225'600) + since; }  // 2026-01-01 in UTC

TEST(FairShare, NobodyUsedAnything) {
  EXPECT_THAT(FairShare(kWeek).SharesAt(At({}), {}), IsEmpty());
  EXPECT_EQ(ShareOf({}, "ana"), 0);
}

TEST(FairShare, AfterAHalfLifeItIsHalf) {
  FairShare use(kWeek);
  use.Add("ana", At({}), 8'000'000);
  EXPECT_THAT(use.SharesAt(At({}), {}), ElementsAre(Pair("ana", DoubleEq(8000))));
  EXPECT_THAT(use.SharesAt(At(kWeek), {}), ElementsAre(Pair("ana", DoubleEq(4000))));
  EXPECT_THAT(use.SharesAt(At(3 * kWeek), {}), ElementsAre(Pair("ana", DoubleEq(1000))));
  EXPECT_THAT(use.SharesAt(At(kWeek / 2), {}), ElementsAre(Pair("ana", DoubleNear(8000 / std::sqrt(2), 1e-6))));
}

TEST(FairShare, WhatRunsCountsInFull) {
  FairShare use(kWeek);
  use.Add("ana", At({}), 8'000'000);
  EXPECT_THAT(use.SharesAt(At(kWeek), {{"ana", 500'000}, {"ben", 7000}}),
              ElementsAre(Pair("ana", DoubleEq(4500)), Pair("ben", DoubleEq(7))));
}

TEST(FairShare, LatelyCountsMoreThanMuch) {
  FairShare use(kWeek);
  use.Add("ana", At({}), 100'000);
  use.Add("ben", At(4 * kWeek), 10'000);
  for (const absl::Duration later : {4 * kWeek, 5 * kWeek, 50 * kWeek}) {
    const Shares shares = use.SharesAt(At(later), {});
    EXPECT_LT(ShareOf(shares, "ana"), ShareOf(shares, "ben")) << later;
  }
}

TEST(FairShare, TheOrderInWhichItIsToldDoesNotCount) {
  struct Use {
    std::string owner;
    absl::Duration at;
    int64_t gpu_ms = 0;
  };
  std::mt19937_64 random(7);
  std::vector<Use> uses;
  for (int i = 0; i < 500; ++i) {
    const auto hours = static_cast<int64_t>(random() % (24 * 3650));
    uses.push_back({random() % 2 == 0 ? "ana" : "ben", absl::Hours(hours), static_cast<int64_t>(random() % 1'000'000)});
  }
  const auto shares = [&] {
    FairShare use(kWeek);
    for (const Use& one : uses) use.Add(one.owner, At(one.at), one.gpu_ms);
    return use.SharesAt(At(absl::Hours(24 * 3650)), {});
  };
  const Shares first = shares();
  for (int i = 0; i < 20; ++i) {
    std::shuffle(uses.begin(), uses.end(), random);
    const Shares other = shares();
    for (const char* owner : {"ana", "ben"}) {
      EXPECT_NEAR(ShareOf(other, owner) / ShareOf(first, owner), 1, 1e-12) << owner;
    }
  }
}

// Ten years of full use of 10,000 cards, of half-lives from the shortest to the longest.
TEST(FairShare, NothingOverflowsInTenYears) {
  for (const absl::Duration half_life : {absl::Minutes(1), kWeek, absl::Hours(24 * 365)}) {
    FairShare use(half_life);
    absl::Time end;
    for (int day = 0; day < 3650; ++day) {
      end = At(absl::Hours(24 * day));
      use.Add("ana", end, int64_t{10'000} * 86'400'000);
      use.Add("ben", end, int64_t{5000} * 86'400'000);
    }
    const Shares shares = use.SharesAt(end, {});
    EXPECT_TRUE(std::isfinite(ShareOf(shares, "ana")));
    EXPECT_GE(ShareOf(shares, "ana"), 10'000.0 * 86'400 * (1 - 1e-9)) << half_life;
    EXPECT_DOUBLE_EQ(ShareOf(shares, "ana"), 2 * ShareOf(shares, "ben")) << half_life;
    EXPECT_TRUE(std::isfinite(ShareOf(use.SharesAt(At({}), {}), "ana"))) << "the clock was set back by ten years";
  }
}

TEST(FairShare, ACorrectionNeverComesToLessThanNothing) {
  FairShare use(kWeek);
  use.Add("ana", At({}), 1000);
  use.Add("ana", At(kWeek), -1000);
  EXPECT_THAT(use.SharesAt(At(kWeek), {}), ElementsAre(Pair("ana", 0)));
}

}  // namespace
}  // namespace tp::core
