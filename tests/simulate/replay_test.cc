// Small workloads whose outcome was worked out by hand.
#include "simulate/replay.h"

#include <gtest/gtest.h>

#include "simulate/figures.h"

namespace tp::simulate {
namespace {

constexpr absl::CivilDay kNewYear(2026, 1, 1);

class ReplayTest : public ::testing::Test {
 protected:
  // Two nodes of four cards.
  ReplayTest() {
    core::Registry registry;
    core::Executor executor;
    executor.name = "gpu/default";
    executor.provider = "gpu";
    executor.profile = "default";
    executor.backend = "kubernetes_job";
    registry.executors[executor.name] = executor;
    core::Series series;
    series.name = "x";
    series.gpus_per_node = 4;
    series.executor = executor.name;
    series.nodes = {{.name = "n1", .address = "n1"}, {.name = "n2", .address = "n2"}};
    registry.series["x"] = series;
    core::Profile profile;
    profile.name = profile.series = "x";
    registry.profiles["x"] = profile;
    registry_ = registry;
  }

  void Add(absl::Duration at, const std::string& user, const std::string& profile, absl::Duration runs,
           std::optional<absl::Duration> limit = std::nullopt) {
    Submission& job = workload_.jobs.emplace_back();
    job.at = at;
    job.user = user;
    job.profile = profile;
    job.runs = runs;
    job.time_limit = limit;
  }

  PolicyCase Rules() const {
    return {.name = "rules",
            .policy = policy_,
            .registry = std::make_shared<const core::Registry>(registry_),
            .user_quotas = {}};
  }

  Outcome Run(absl::CivilDay day = kNewYear) const {
    return Replay(workload_, Rules(), absl::FromCivil(day, absl::UTCTimeZone()), absl::UTCTimeZone());
  }

  absl::Duration Wait(const Outcome& outcome, size_t job) const {
    return *outcome.jobs[job].started - outcome.begins - workload_.jobs[job].at;
  }
  static absl::Duration At(const JobOutcome& job, core::GateKind gate) { return job.waited[static_cast<size_t>(gate)]; }

  core::Registry registry_;
  core::Policy policy_;
  Workload workload_;
};

using core::GateKind;

TEST_F(ReplayTest, ByHand) {
  Add(absl::ZeroDuration(), "ann", "x:8", absl::Hours(2));               // 0:00 to 2:00
  Add(absl::Minutes(10), "bob", "x:4", absl::Hours(1));                  // 2:00 to 3:00
  Add(absl::Minutes(20), "ann", "x:4", absl::Hours(3), absl::Hours(1));  // 2:00 to 3:00, its limit
  Add(absl::Minutes(30), "cleo", "x:8", absl::Minutes(30));              // 3:00 to 3:30
  Add(absl::Minutes(40), "cleo", "x:12", absl::Minutes(30));             // more than there is
  const Outcome outcome = Run();
  EXPECT_EQ(Wait(outcome, 0), absl::ZeroDuration());
  EXPECT_EQ(Wait(outcome, 1), absl::Minutes(110));
  EXPECT_EQ(Wait(outcome, 2), absl::Minutes(100));
  EXPECT_EQ(Wait(outcome, 3), absl::Minutes(150));
  EXPECT_EQ(outcome.jobs[4].refused, "--profile x:12: series x has only 2 nodes x 4 = 8 cards");
  EXPECT_EQ(outcome.ends - outcome.begins, absl::Minutes(210));

  const Figures figures = FiguresOf(workload_, Rules(), outcome);
  EXPECT_EQ(figures.submitted, 5);
  EXPECT_EQ(figures.refused_count(), 1);
  EXPECT_EQ(figures.ended, 4);
  EXPECT_EQ(figures.over_limit, 1);
  EXPECT_EQ(figures.never_started, 0);
  EXPECT_EQ(figures.wait.mean, absl::Minutes(90));
  EXPECT_EQ(figures.wait.median, absl::Minutes(100));
  EXPECT_EQ(figures.wait.p95, absl::Minutes(150));
  EXPECT_EQ(figures.wait_by_user.at("ann").mean, absl::Minutes(50));
  EXPECT_EQ(figures.wait_by_size.at("x:8").max, absl::Minutes(150));
  EXPECT_DOUBLE_EQ(figures.series.at("x").share, 1);
  ASSERT_EQ(figures.gates.size(), 1u);
  EXPECT_EQ(figures.gates.at(GateKind::kCapacity).count, 3);
  EXPECT_EQ(figures.gates.at(GateKind::kCapacity).sum, absl::Hours(6));
  EXPECT_EQ(figures.gpu_ms_by_user.at("ann"), 72'000'000);
  EXPECT_EQ(figures.gpu_ms_by_user.at("bob"), 14'400'000);
  EXPECT_EQ(figures.events, 9);
}

TEST_F(ReplayTest, WhatASmallerDefaultTimeLimitLetsPass) {
  Add(absl::ZeroDuration(), "ann", "x:4", absl::Hours(2), absl::Hours(2));
  Add(absl::Minutes(10), "bob", "x:8", absl::Hours(1));  // reserves for 2:00
  Add(absl::Minutes(20), "ann", "x:4", absl::Minutes(30));
  Add(absl::Minutes(30), "cleo", "x:4", absl::Minutes(30), absl::Hours(1));  // ends in time
  const Outcome month = Run();
  EXPECT_EQ(Wait(month, 1), absl::Minutes(110));
  EXPECT_EQ(Wait(month, 3), absl::ZeroDuration());
  EXPECT_EQ(Wait(month, 2), absl::Minutes(160));
  EXPECT_EQ(At(month.jobs[2], GateKind::kOrder), absl::Minutes(70));
  EXPECT_EQ(At(month.jobs[2], GateKind::kCapacity), absl::Minutes(90));
  policy_.default_time_limit = absl::Hours(1);
  const Outcome hour = Run();
  EXPECT_EQ(Wait(hour, 2), absl::ZeroDuration());
  EXPECT_EQ(Wait(hour, 1), absl::Minutes(110));
}

TEST_F(ReplayTest, QuotasHoldAndWhatIsLargerNeverStarts) {
  registry_.quota_defaults.gpus = 4;
  Add(absl::ZeroDuration(), "ann", "x:8", absl::Hours(2));
  Add(absl::Minutes(10), "bob", "x:4", absl::Hours(1));
  Add(absl::Minutes(20), "bob", "x:4", absl::Hours(1));
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.jobs[0].started);
  EXPECT_EQ(Wait(outcome, 2), absl::Minutes(50));
  EXPECT_EQ(At(outcome.jobs[2], GateKind::kQuotaGpus), absl::Minutes(50));
  EXPECT_EQ(At(outcome.jobs[0], GateKind::kQuotaGpus), absl::Minutes(130));  // until the last event
  EXPECT_EQ(FiguresOf(workload_, Rules(), outcome).never_started, 1);
}

TEST_F(ReplayTest, AMonthBringsItsGpuHours) {
  registry_.quota_defaults.gpu_hours = 4;
  Add(absl::ZeroDuration(), "ann", "x:1", absl::Hours(4));
  Add(absl::Hours(5), "ann", "x:1", absl::Hours(1));
  const Outcome outcome = Run(absl::CivilDay(2026, 1, 31));
  EXPECT_EQ(Wait(outcome, 1), absl::Hours(19));
  EXPECT_EQ(At(outcome.jobs[1], GateKind::kQuotaGpuHours), absl::Hours(19));
}

TEST_F(ReplayTest, AWindowHoldsPausesAndResumes) {
  core::Window window;
  for (int day = 0; day < 7; ++day) window.open.push_back({day, 8 * 60, 20 * 60});
  registry_.series["x"].windows = {window};
  Add(absl::ZeroDuration(), "ann", "x:2", absl::Hours(14));
  const Outcome outcome = Run();
  EXPECT_EQ(Wait(outcome, 0), absl::Hours(8));
  EXPECT_EQ(At(outcome.jobs[0], GateKind::kWindow), absl::Hours(8));
  EXPECT_EQ(outcome.jobs[0].pauses, 1);
  EXPECT_EQ(*outcome.jobs[0].ended - outcome.begins, absl::Hours(34));
  EXPECT_EQ(outcome.jobs[0].gpu_ms, int64_t{28} * 3'600'000);
}

TEST_F(ReplayTest, FairShareLetsThoseGoFirstWhoUsedLess) {
  Add(absl::ZeroDuration(), "ann", "x:8", absl::Hours(1));
  Add(absl::Minutes(10), "ann", "x:8", absl::Hours(1));
  Add(absl::Minutes(20), "bob", "x:8", absl::Hours(1));
  EXPECT_EQ(Wait(Run(), 1), absl::Minutes(50));
  policy_.fair_share = true;
  const Outcome fair = Run();
  EXPECT_EQ(Wait(fair, 2), absl::Minutes(40));
  EXPECT_EQ(Wait(fair, 1), absl::Minutes(110));
}

TEST(SpreadTest, NearestRanks) {
  EXPECT_EQ(SpreadOf({}).count, 0);
  std::vector<absl::Duration> durations;
  for (int i = 20; i >= 1; --i) durations.push_back(absl::Seconds(i));
  const Spread spread = SpreadOf(durations);
  EXPECT_EQ(spread.median, absl::Seconds(10));
  EXPECT_EQ(spread.p95, absl::Seconds(19));
  EXPECT_EQ(spread.max, absl::Seconds(20));
  EXPECT_EQ(spread.mean, absl::Milliseconds(10'500));
}

}  // namespace
}  // namespace tp::simulate
