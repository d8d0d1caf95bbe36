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

  std::vector<GateVerdict> Closed(size_t step = 0) {
    return ClosedGates({run_, run_.steps[step], &shape_, capacity_, now_});
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  RunWithSteps run_;
  ResolvedShape shape_;
  Capacity capacity_;
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
  EXPECT_EQ(closed[3].sentence, "launch 3 did not come up (port 29500 is taken); the next try is in 4 s");
  EXPECT_EQ(closed[3].opens_at, now_ + absl::Seconds(4));
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
  const auto closed = ClosedGates({run_, run_.steps[0], nullptr, capacity_, now_});
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].gate, GateKind::kHeld);
}

}  // namespace
}  // namespace tp::core
