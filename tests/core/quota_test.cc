// Layers of limits, and what users hold.
#include "core/quota.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/quota_use.h"

namespace tp::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'767'225'600 + seconds); }  // 2026-01-01 in UTC

// --- Limits ---------------------------------------------------------------------------------------

QuotaLimits Gpus(int64_t gpus) {
  QuotaLimits limits;
  limits.gpus = gpus;
  return limits;
}

QuotaRule Rule(int64_t id, const std::string& user, QuotaLimits limits) {
  QuotaRule rule;
  rule.id = id;
  rule.user = user;
  rule.limits = std::move(limits);
  return rule;
}

QuotaRule Dated(int64_t id, std::optional<absl::Time> from, std::optional<absl::Time> until, QuotaLimits limits) {
  QuotaRule rule = Rule(id, "ana", std::move(limits));
  rule.from = from;
  rule.until = until;
  return rule;
}

TEST(QuotaBook, WithoutAnythingThereAreNoLimits) {
  EXPECT_TRUE(QuotaBook().LimitsOf("ana", At(0)).empty());
  EXPECT_EQ(QuotaBook().NextEdge(At(0)), std::nullopt);
}

TEST(QuotaBook, EachKeyIsThatOfTheLastLayerThatHasIt) {
  QuotaLimits defaults = Gpus(8);
  defaults.series_gpus = {{"h200", 4}, {"a100", 2}};
  defaults.jobs = 10;
  QuotaBook book(defaults);
  QuotaLimits own;
  own.series_gpus = {{"h200", 6}};
  own.gpu_hours = 100;
  book.Add(Rule(1, "ana", own));
  book.Add(Dated(2, At(10), At(20), Gpus(16)));

  QuotaLimits expected = defaults;
  EXPECT_EQ(book.LimitsOf("ben", At(15)), expected);
  expected.series_gpus["h200"] = 6;
  expected.gpu_hours = 100;
  EXPECT_EQ(book.LimitsOf("ana", At(9)), expected);
  expected.gpus = 16;
  EXPECT_EQ(book.LimitsOf("ana", At(10)), expected);
  EXPECT_EQ(book.LimitsOf("ana", At(20) - absl::Nanoseconds(1)), expected);
  expected.gpus = 8;
  EXPECT_EQ(book.LimitsOf("ana", At(20)), expected);

  book.SetDefaults({});
  EXPECT_TRUE(book.LimitsOf("ben", At(15)).empty());
}

TEST(QuotaLimits, AnEditClearsThenSetsAndLeavesTheRest) {
  QuotaLimits limits = Gpus(8);
  limits.jobs = 4;
  limits.series_gpus = {{"h200", 8}, {"a100", 2}};
  QuotaKeys clear;
  clear.gpus = true;
  clear.series = {"h200", "nosuch"};
  QuotaLimits set;
  set.gpu_hours = 100;
  set.series_gpus = {{"b200", kNoLimit}};
  QuotaLimits expected;
  expected.jobs = 4;
  expected.gpu_hours = 100;
  expected.series_gpus = {{"a100", 2}, {"b200", kNoLimit}};
  EXPECT_EQ(Patched(limits, clear, set), expected);
  clear.all = true;
  EXPECT_EQ(Patched(limits, clear, set), set);
  EXPECT_EQ(Patched(limits, {}, {}), limits);
  for (bool QuotaKeys::*key : {&QuotaKeys::jobs, &QuotaKeys::gpu_hours, &QuotaKeys::storage_bytes}) {
    QuotaLimits all = Gpus(1);
    all.jobs = all.gpu_hours = all.storage_bytes = 1;
    QuotaKeys one;
    one.*key = true;
    EXPECT_NE(Patched(all, one, {}), all);
    EXPECT_EQ(Patched(all, one, {}).gpus, 1);
  }
}

TEST(QuotaBook, TheOwnRuleIsTheOneWithoutDates) {
  QuotaBook book;
  EXPECT_EQ(book.OwnRule("ana"), nullptr);
  book.Add(Dated(1, At(0), std::nullopt, Gpus(1)));
  EXPECT_EQ(book.OwnRule("ana"), nullptr);
  book.Add(Rule(2, "ana", Gpus(2)));
  EXPECT_EQ(book.OwnRule("ana")->id, 2);
}

TEST(QuotaBook, NoLimitIsALimitLikeAnyOther) {
  QuotaBook book(Gpus(8));
  book.Add(Rule(1, "ana", Gpus(kNoLimit)));
  EXPECT_EQ(book.LimitsOf("ana", At(0)).gpus, kNoLimit);
  book.Add(Dated(2, std::nullopt, At(5), Gpus(0)));
  EXPECT_EQ(book.LimitsOf("ana", At(4)).gpus, 0);
  EXPECT_EQ(book.LimitsOf("ana", At(5)).gpus, kNoLimit);
}

TEST(QuotaBook, OfOverlappingOverridesTheOneSetLastCounts) {
  QuotaBook book;
  QuotaLimits wide = Gpus(1);
  wide.jobs = 1;
  book.Add(Dated(2, At(0), At(100), wide));
  book.Add(Dated(3, At(10), std::nullopt, Gpus(2)));
  book.Add(Rule(4, "ana", Gpus(99)));  // the own one comes first, whenever it was set
  EXPECT_EQ(book.LimitsOf("ana", At(50)).gpus, 2);
  EXPECT_EQ(book.LimitsOf("ana", At(50)).jobs, 1);
  EXPECT_EQ(book.LimitsOf("ana", At(5)).gpus, 1);
  EXPECT_EQ(book.LimitsOf("ana", At(-1)).gpus, 99);
  book.Add(Dated(2, At(0), At(100), Gpus(3)));  // set anew
  EXPECT_EQ(book.LimitsOf("ana", At(50)).gpus, 3);
  EXPECT_EQ(book.LimitsOf("ana", At(50)).jobs, std::nullopt);
}

TEST(QuotaBook, WhatIsRemovedCountsNoLonger) {
  QuotaBook book(Gpus(8));
  book.Add(Rule(1, "ana", Gpus(1)));
  book.Add(Rule(2, "ben", Gpus(2)));
  book.Remove(1);
  book.Remove(77);
  EXPECT_EQ(book.LimitsOf("ana", At(0)).gpus, 8);
  EXPECT_EQ(book.LimitsOf("ben", At(0)).gpus, 2);
  EXPECT_THAT(book.rules(), ElementsAre(Pair("ben", ElementsAre(Rule(2, "ben", Gpus(2))))));
}

TEST(QuotaBook, TheNextEdgeIsWhereADatedRuleBeginsOrEnds) {
  QuotaBook book;
  book.Add(Dated(1, At(10), At(30), Gpus(1)));
  book.Add(Dated(2, At(20), std::nullopt, Gpus(1)));
  EXPECT_EQ(book.NextEdge(At(0)), At(10));
  EXPECT_EQ(book.NextEdge(At(10)), At(20));
  EXPECT_EQ(book.NextEdge(At(20)), At(30));
  EXPECT_EQ(book.NextEdge(At(30)), std::nullopt);
}

// Nothing changes between two edges.
TEST(QuotaBook, LimitsChangeOnlyAtEdges) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    QuotaBook book(Gpus(5));
    for (int64_t id = 1; id <= 5; ++id) {
      const auto from = static_cast<int64_t>(random() % 50);
      book.Add(Dated(id, At(from), At(from + 1 + static_cast<int64_t>(random() % 20)), Gpus(id)));
    }
    QuotaLimits before = book.LimitsOf("ana", At(-1));
    absl::Time edge = *book.NextEdge(At(-1));
    for (int64_t second = 0; second < 80; ++second) {
      const QuotaLimits now = book.LimitsOf("ana", At(second));
      if (now != before) {
        ASSERT_EQ(At(second), edge) << "seed " << seed;
      }
      before = now;
      edge = book.NextEdge(At(second)).value_or(absl::InfiniteFuture());
    }
  }
}

// --- Use ------------------------------------------------------------------------------------------

PoolPlacement Pool(const std::string& series, int cards) {
  PoolPlacement pool;
  pool.series = series;
  pool.gpus_per_node = cards;
  pool.ranks.resize(1);
  return pool;
}

Step LiveStep(StepRef ref, std::vector<PoolPlacement> placement, std::optional<absl::Time> metered_from = {}) {
  Step step;
  step.ref = ref;
  step.attempt.emplace();
  step.attempt->placement = std::move(placement);
  if (metered_from) {
    step.attempt->meter.emplace();
    step.attempt->meter->seen_at = *metered_from;
  }
  return step;
}

Step Without(Step step) {
  step.attempt.reset();
  return step;
}

class QuotaUsageTest : public ::testing::Test {
 protected:
  QuotaUse UseOf(const std::string& owner, absl::Time now = At(0)) const { return usage_.UseOf(owner, now); }

  QuotaUsage usage_{absl::UTCTimeZone()};
};

TEST_F(QuotaUsageTest, NobodyHoldsAnythingAtFirst) {
  EXPECT_EQ(UseOf("ana"), QuotaUse());
  EXPECT_THAT(usage_.Owners(), IsEmpty());
}

TEST_F(QuotaUsageTest, CardsAndSlotsAreHeldWhileThereIsAnAttempt) {
  const Step step = LiveStep({1, 0}, {Pool("h200", 8), Pool("a100", 4), Pool("h200", 8)});
  EXPECT_FALSE(usage_.Follow("ana", step));
  QuotaUse expected;
  expected.gpus = 20;
  expected.series_gpus = {{"h200", 16}, {"a100", 4}};
  expected.jobs = 1;
  EXPECT_EQ(UseOf("ana"), expected);
  EXPECT_EQ(UseOf("ben"), QuotaUse());
  EXPECT_FALSE(usage_.Follow("ana", step)) << "the same again";
  EXPECT_EQ(UseOf("ana"), expected);
  EXPECT_TRUE(usage_.Follow("ana", Without(step)));
  EXPECT_EQ(UseOf("ana"), QuotaUse());
  EXPECT_FALSE(usage_.Follow("ana", Without(step)));
}

TEST_F(QuotaUsageTest, JobsWithoutCardsTakeASlot) {
  usage_.Follow("ana", LiveStep({1, 0}, {Pool("cpu", 0)}));
  usage_.Follow("ana", LiveStep({1, 1}, {Pool("cpu", 0)}));
  QuotaUse expected;
  expected.jobs = 2;
  EXPECT_EQ(UseOf("ana"), expected);
}

TEST_F(QuotaUsageTest, TheMonthIsWhatWasSettledAndWhatRuns) {
  usage_.AddSettled("2026-01", "ana", 1000);
  usage_.AddSettled("2026-01", "ana", -400);  // a delta row takes back
  usage_.AddSettled("2025-12", "ana", 9'000'000);
  usage_.AddSettled("2026-01", "ben", 7);
  EXPECT_EQ(UseOf("ana", At(100)).month_gpu_ms, 600);
  usage_.Follow("ana", LiveStep({1, 0}, {Pool("h200", 4)}, At(90)));
  EXPECT_EQ(UseOf("ana", At(100)).month_gpu_ms, 600 + 40'000);
  EXPECT_EQ(UseOf("ben", At(100)).month_gpu_ms, 7);
}

TEST_F(QuotaUsageTest, OfWhatRunsThePresentMonthCounts) {
  usage_.Follow("ana", LiveStep({1, 0}, {Pool("h200", 2)}, At(-3600)));
  EXPECT_EQ(UseOf("ana", At(-1)).month_gpu_ms, 3599 * 2000);
  EXPECT_EQ(UseOf("ana", At(0)).month_gpu_ms, 0);
  EXPECT_EQ(UseOf("ana", At(10)).month_gpu_ms, 20'000);
}

TEST_F(QuotaUsageTest, OfWhatRunsAllCountsInAShare) {
  usage_.Follow("ana", LiveStep({1, 0}, {Pool("h200", 2)}, At(-3600)));
  usage_.Follow("ana", LiveStep({2, 0}, {Pool("h200", 1)}, At(0)));
  usage_.Follow("ben", LiveStep({3, 0}, {Pool("h200", 1)}));  // has not begun
  usage_.Follow("cat", LiveStep({4, 0}, {Pool("cpu", 0)}, At(0)));
  usage_.AddSettled("2026-01", "dan", 1000);
  EXPECT_THAT(usage_.LiveGpuMs(At(10)), ElementsAre(Pair("ana", 3610 * 2000 + 10'000)));
}

TEST_F(QuotaUsageTest, AClosedMeterCountsNoFurther) {
  Step step = LiveStep({1, 0}, {Pool("h200", 1)}, At(0));
  step.attempt->meter->opened.unix_us = 500;  // the host's clock says something else
  step.attempt->meter->closed_unix_us = 500 + 7'000'000;
  usage_.Follow("ana", step);
  EXPECT_EQ(UseOf("ana", At(3)).month_gpu_ms, 3000);
  EXPECT_EQ(UseOf("ana", At(100)).month_gpu_ms, 7000);
}

TEST_F(QuotaUsageTest, MonthsAreThoseOfTheZone) {
  absl::TimeZone berlin;
  ASSERT_TRUE(absl::LoadTimeZone("Europe/Berlin", &berlin));
  QuotaUsage usage(berlin);
  usage.AddSettled("2026-01", "ana", 5);
  EXPECT_EQ(usage.UseOf("ana", At(-3601)).month_gpu_ms, 0);
  EXPECT_EQ(usage.UseOf("ana", At(-3600)).month_gpu_ms, 5);
}

TEST_F(QuotaUsageTest, StorageIsUnknownUntilAScanWasComplete) {
  usage_.SetStorage("ana", {1 << 20, At(1)});
  EXPECT_EQ(UseOf("ana").storage, (StorageUse{1 << 20, At(1)}));
  EXPECT_EQ(UseOf("ben").storage, std::nullopt);
  usage_.SetStorage(kEverybody, {0, At(2)});
  EXPECT_EQ(UseOf("ana").storage, (StorageUse{1 << 20, At(1)}));
  EXPECT_EQ(UseOf("ben").storage, (StorageUse{0, At(2)}));
}

TEST_F(QuotaUsageTest, OwnersAreAllWhoHoldOrUsed) {
  usage_.Follow("ana", LiveStep({1, 0}, {Pool("h200", 1)}));
  usage_.AddSettled("2026-01", "ben", 1);
  usage_.SetStorage("cat", {1, At(0)});
  usage_.SetStorage(kEverybody, {0, At(0)});
  EXPECT_THAT(usage_.Owners(), ElementsAre("ana", "ben", "cat"));
}

// Followed step by step it comes to what counting everything anew comes to.
TEST_F(QuotaUsageTest, FollowingIsCounting) {
  const std::vector<std::string> owners = {"ana", "ben", "cat"};
  std::mt19937_64 random(7);
  std::map<StepRef, Step> steps;
  for (int turn = 0; turn < 3000; ++turn) {
    const StepRef ref{static_cast<int64_t>(random() % 20), static_cast<int32_t>(random() % 3)};
    Step step = LiveStep(ref, {});
    for (uint64_t pools = random() % 3; pools > 0; --pools) {
      step.attempt->placement.push_back(Pool(random() % 2 == 0 ? "h200" : "a100", static_cast<int>(random() % 5)));
    }
    if (random() % 2 == 0) step.attempt.reset();
    const bool held = steps.contains(ref) && steps[ref].attempt.has_value();
    EXPECT_EQ(usage_.Follow(owners[static_cast<size_t>(ref.run) % 3], step), held && !step.attempt);
    steps[ref] = step;
    for (size_t i = 0; i < owners.size(); ++i) {
      QuotaUse expected;
      for (const auto& [other, kept] : steps) {
        if (static_cast<size_t>(other.run) % 3 != i || !kept.attempt) continue;
        expected.jobs += 1;
        for (const PoolPlacement& pool : kept.attempt->placement) {
          expected.gpus += pool.cards();
          if (pool.cards() > 0) expected.series_gpus[pool.series] += pool.cards();
        }
      }
      ASSERT_EQ(UseOf(owners[i]), expected) << "turn " << turn;
    }
  }
}

}  // namespace
}  // namespace tp::core
