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
};

TEST_F(Gates, OpenWhenNothingIsInTheWay) { EXPECT_TRUE(Closed().empty()); }

TEST_F(Gates, CapacityNamesTheNumbers) {
  capacity_.Take(*capacity_.Place(shape_, ""));
  const auto closed = Closed();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].gate, GateKind::kCapacity);
  EXPECT_EQ(closed[0].sentence, "h200 needs 1 node x 8 cards, 0 of 8 cards are free; starts when cards are released");
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
  EXPECT_EQ(closed[1].sentence, "retry 2 waits 30 more seconds after the failure");
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
  EXPECT_EQ(Closed()[0].sentence, "your GPUs: 12 of 16 in use, this job needs 8; starts when 4 more are released");
  use_.gpus = 8;
  EXPECT_TRUE(Closed().empty());
}

TEST_F(Gates, QuotaOfASeriesIsNamedByIt) {
  limits_.series_gpus = {{"h200", 8}, {"a100", 0}};
  use_.series_gpus = {{"h200", 1}};
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaSeries);
  EXPECT_EQ(Closed()[0].sentence, "your h200 GPUs: 1 of 8 in use, this job needs 8; starts when 1 more are released");
}

TEST_F(Gates, QuotaOfJobs) {
  limits_.jobs = 2;
  use_.jobs = 2;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaJobs);
  EXPECT_EQ(Closed()[0].sentence, "your jobs: 2 of 2 slots in use; starts when one of them ends");
}

TEST_F(Gates, QuotaOfGpuHoursOpensWithTheMonth) {
  limits_.gpu_hours = 10;
  use_.month_gpu_ms = int64_t{10} * 3'600'000;
  ASSERT_EQ(Closed().size(), 1u);
  EXPECT_EQ(Closed()[0].gate, GateKind::kQuotaGpuHours);
  EXPECT_EQ(Closed()[0].opens_at, now_ + absl::Hours(100));
  use_.month_gpu_ms -= 1;
  EXPECT_TRUE(Closed().empty());
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
