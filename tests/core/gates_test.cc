#include "core/gates.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

class Gates : public ::testing::Test {
 protected:
  Gates() : capacity_(OneNode()) {
    Step step;
    step.ref = {1, 0};
    step.spec.name = "train";
    run_.steps = {step};
    PoolShape pool;
    pool.series = "h200";
    pool.nodes = 1;
    pool.gpus_per_node = 8;
    shape_.pools = {pool};
  }

  static Registry OneNode() {
    Registry registry;
    Series series;
    series.name = "h200";
    series.gpus_per_node = 8;
    series.nodes = {{"n1", "127.0.0.1"}};
    registry.series["h200"] = series;
    return registry;
  }

  std::vector<GateVerdict> Closed(size_t step = 0) { return ClosedGates({run_, run_.steps[step], &shape_, Now()}); }

  Situation Now() const {
    return {.policy = policy_,
            .capacity = capacity_,
            .reservations = {},
            .limits = limits_,
            .use = use_,
            .month_ends = now_ + absl::Hours(100),
            .accounting_zone = zone_,
            .schedule = {},
            .window = {},
            .now = now_};
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  RunWithSteps run_;
  ResolvedShape shape_;
  Capacity capacity_;
  Policy policy_;
  QuotaLimits limits_;
  QuotaUse use_;
  absl::TimeZone zone_ = absl::UTCTimeZone();
};

TEST_F(Gates, OpenWhenNothingIsInTheWay) { EXPECT_TRUE(Closed().empty()); }

TEST_F(Gates, CapacityNamesTheNumbers) {
  capacity_.Take(*capacity_.Place(shape_, ""));
  const auto closed = Closed();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].gate, GateKind::kCapacity);
  EXPECT_EQ(closed[0].sentence, "h200 needs 1 node x 8 cards, 0 of 8 cards are free; starts when cards are released");
}

TEST_F(Gates, CapacityTellsWhenEnoughAreFreeButScattered) {
  Registry registry = OneNode();
  registry.series["h200"].nodes.push_back({"n2", "127.0.0.1"});
  capacity_ = Capacity(registry);
  ResolvedShape half = shape_;
  half.pools[0].gpus_per_node = 5;
  for (int i = 0; i < 2; ++i) capacity_.Take(*capacity_.Place(half, ""));
  shape_.pools[0].gpus_per_node = 6;
  EXPECT_EQ(Closed().at(0).sentence,
            "h200 needs 1 node x 6 cards, 6 of 16 cards are free, but too few nodes have 6 of them; starts when cards "
            "are released");
}

TEST_F(Gates, AllAreNamedTogether) {
  capacity_.Take(*capacity_.Place(shape_, ""));
  run_.steps[0].hold.admin = true;
  run_.steps[0].retry_count = 2;
  run_.steps[0].cooldown_until = now_ + absl::Milliseconds(29500);
  run_.steps[0].backoff_until = now_ + absl::Seconds(4);
  run_.steps[0].backoff_reason = "port 29500 is taken";
  run_.steps[0].attempts = 3;
  const auto closed = Closed();
  ASSERT_EQ(closed.size(), 4u);
  EXPECT_EQ(closed[1].sentence, "it failed; retry 2 starts in 30 s");
  EXPECT_EQ(closed[2].sentence, "launch 3 did not come up (port 29500 is taken); the next try is in 4 s");
  EXPECT_EQ(closed[2].opens_at, now_ + absl::Seconds(4));
}

TEST_F(Gates, DependencyWaitsAndKnowsWhenItIsHopeless) {
  Step second = run_.steps[0];
  second.ref.step = 1;
  second.spec.after = After{0, AfterWhen::kSuccess};
  run_.steps.push_back(second);
  ASSERT_EQ(Closed(1).size(), 1u);
  EXPECT_EQ(Closed(1)[0].sentence, "waits for step 1 (train), which is QUEUED");
  run_.steps[0].state = JobState::kSucceeded;
  EXPECT_TRUE(Closed(1).empty());
  run_.steps[0].state = JobState::kFailed;
  EXPECT_EQ(Dependency(run_, run_.steps[1]), DependencyState::kImpossible);
  run_.steps[1].spec.after->when = AfterWhen::kFailure;
  EXPECT_EQ(Dependency(run_, run_.steps[1]), DependencyState::kMet);
}

TEST_F(Gates, AShapeThatNoLongerResolvesHolds) {
  run_.steps[0].hold.shape = "profile h200 is gone";
  const auto closed = ClosedGates({run_, run_.steps[0], nullptr, Now()});
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].gate, GateKind::kHeld);
}

TEST_F(Gates, QuotaOfGpusSaysWhatIsUsedAndWhatFreesIt) {
  limits_.gpus = 16;
  use_.gpus = 12;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaGpus);
  EXPECT_EQ(Closed()[0].sentence, "your GPUs: 12 of 16 in use, this job needs 8; starts when 4 of them are released");
  use_.gpus = 20;
  EXPECT_EQ(Closed()[0].sentence,
            "your GPUs: 20 of 16 in use (over by 4), this job needs 8; starts when 12 of them are released");
  limits_.gpus = 4;
  EXPECT_EQ(
      Closed()[0].sentence,
      "your GPUs: 20 of 4 in use (over by 16), this job needs 8, more than the quota itself: an admin can raise it");
  limits_.gpus = 16;
  use_.gpus = 8;
  EXPECT_TRUE(Closed().empty());
}

TEST_F(Gates, QuotaOfASeriesIsNamedByIt) {
  limits_.series_gpus = {{"h200", 8}, {"a100", 0}};
  use_.series_gpus = {{"h200", 1}};
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaSeries);
  EXPECT_EQ(Closed()[0].sentence, "your h200 GPUs: 1 of 8 in use, this job needs 8; starts when 1 of them is released");
}

TEST_F(Gates, QuotaOfJobs) {
  limits_.jobs = 2;
  use_.jobs = 2;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaJobs);
  EXPECT_EQ(Closed()[0].sentence, "your jobs: 2 of 2 slots in use; starts when one of them ends");
  limits_.jobs = 1;
  EXPECT_EQ(Closed()[0].sentence, "your jobs: 2 of 1 slots in use (over by 1); starts when 2 of them end");
  limits_.jobs = use_.jobs = 0;
  EXPECT_EQ(Closed()[0].sentence, "your jobs: 0 of 0 slots in use: the quota lets none start; an admin can raise it");
}

TEST_F(Gates, QuotaOfGpuHoursOpensWithTheMonth) {
  limits_.gpu_hours = 10;
  use_.month_gpu_ms = int64_t{10} * 3'600'000;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaGpuHours);
  EXPECT_EQ(Closed()[0].opens_at, now_ + absl::Hours(100));
  EXPECT_EQ(Closed()[0].sentence,
            "your GPU-hours: 10.0 of 10 used this month; the next month begins Tue 2027-01-19 12:00 UTC");
  ASSERT_TRUE(absl::LoadTimeZone("Europe/Berlin", &zone_));
  EXPECT_EQ(Closed()[0].sentence,
            "your GPU-hours: 10.0 of 10 used this month; the next month begins Tue 2027-01-19 13:00 CET");
  use_.month_gpu_ms -= 1;
  EXPECT_TRUE(Closed().empty());
}

TEST_F(Gates, NoMonthOpensAQuotaOfNoGpuHours) {
  limits_.gpu_hours = 0;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].opens_at, std::nullopt);
  EXPECT_EQ(Closed()[0].sentence,
            "your GPU-hours: 0.0 of 0 used this month: the quota lets none start; an admin can raise it");
}

TEST_F(Gates, QuotaOfStorageHoldsUntilItIsMeasured) {
  limits_.storage_bytes = int64_t{1} << 30;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaStorage);
  EXPECT_EQ(Closed()[0].sentence, "your storage has not been measured yet; waits for the first scan");
  use_.storage = StorageUse{.bytes = int64_t{3} << 29, .scanned_at = now_ - absl::Minutes(4)};
  EXPECT_EQ(Closed()[0].sentence, "your storage: 1.5 GiB of 1.0 GiB used, measured 4m ago; remove runs with tp rm");
  use_.storage->bytes = 1;
  EXPECT_TRUE(Closed().empty());
}

TEST_F(Gates, WithoutCardsOnlySlotsAndStorageCount) {
  shape_.pools[0].gpus_per_node = 0;
  limits_.gpus = limits_.gpu_hours = 0;
  limits_.series_gpus = {{"h200", 0}};
  EXPECT_TRUE(Closed().empty());
}

TEST_F(Gates, NoLimitIsNoLimit) {
  limits_.gpus = limits_.jobs = limits_.gpu_hours = limits_.storage_bytes = kNoLimit;
  limits_.series_gpus = {{"h200", kNoLimit}};
  EXPECT_TRUE(Closed().empty());
}

}  // namespace
}  // namespace tp::core
