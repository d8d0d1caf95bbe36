// What a look costs, and the sentences of single gates through the planner.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/ledger.h"
#include "plan/hints.h"

namespace tp::plan {
namespace {

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() : planner_(policy_, absl::UTCTimeZone(), OneSeries()) {}

  static std::shared_ptr<const core::Registry> OneSeries() {
    auto registry = std::make_shared<core::Registry>();
    core::Executor executor;
    executor.name = "gpu/default";
    executor.provider = "gpu";
    executor.profile = "default";
    executor.backend = "local";
    executor.config_json = "{}";
    registry->executors[executor.name] = executor;
    core::Series series;
    series.name = "h200";
    series.gpus_per_node = 8;
    series.executor = series.executor_distributed = "gpu/default";
    for (int i = 1; i <= 4; ++i) series.nodes.push_back({.name = "n" + std::to_string(i), .address = "127.0.0.1"});
    registry->series["h200"] = series;
    core::Profile profile;
    profile.name = profile.series = "h200";
    registry->profiles["h200"] = profile;
    return registry;
  }

  core::RunWithSteps& Submit(const std::string& owner, const std::string& profile,
                             std::optional<absl::Duration> limit = std::nullopt, int32_t priority = 50) {
    core::RunWithSteps run;
    run.run.n = static_cast<int64_t>(runs_.size()) + 1;
    run.run.owner = owner;
    run.run.priority = priority;
    run.run.created_at = now_;
    core::Step step;
    step.ref = {run.run.n, 0};
    step.spec.profiles = {profile};
    step.spec.time_limit = limit;
    step.entered_at = now_;
    run.steps = {step};
    core::RunWithSteps& kept = runs_[run.run.n] = run;
    planner_.Follow(kept, kept.steps[0], now_);
    return kept;
  }

  // Runs that start, in order.
  std::vector<int64_t> Look() {
    std::vector<int64_t> started;
    planner_.BeginTurn(now_);
    while (auto start = planner_.Next()) {
      started.push_back(start->step.run);
      core::RunWithSteps& run = runs_.at(start->step.run);
      core::Step& step = run.steps[0];
      step.state = core::JobState::kSubmitted;
      step.attempt.emplace();
      step.attempt->placement = start->placement;
      planner_.Follow(run, step, now_);
    }
    return started;
  }

  void End(core::RunWithSteps& run) {
    run.steps[0].state = core::JobState::kSucceeded;
    run.steps[0].attempt.reset();
    planner_.Follow(run, run.steps[0], now_);
  }

  void LimitGpus(const std::string& user, int64_t gpus) {
    core::QuotaRule rule;
    rule.id = ++rules_;
    rule.user = user;
    rule.limits.gpus = gpus;
    planner_.PutRule(rule);
  }

  std::vector<core::GateVerdict> Verdicts(const core::RunWithSteps& run) {
    const auto shape = MakeShape(planner_.registry(), run.steps[0].spec.profiles);
    return planner_.Verdicts(run, run.steps[0], &*shape->resolved, now_);
  }

  core::Policy policy_;
  Planner planner_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::map<int64_t, core::RunWithSteps> runs_;
  int64_t rules_ = 0;
};

using Runs = std::vector<int64_t>;

TEST_F(PlannerTest, FirstComeFirstServedWithinAPriority) {
  Submit("ann", "h200:16");
  Submit("bob", "h200:16");
  Submit("cleo", "h200:8", absl::Hours(1), 60);
  EXPECT_EQ(Look(), (Runs{3, 1}));
}

TEST_F(PlannerTest, EqualJobsAreJudgedOnce) {
  for (int i = 0; i < 4; ++i) Submit("ann", "h200:8");
  EXPECT_EQ(Look().size(), 4u);
  for (int i = 0; i < 1000; ++i) Submit("bob", "h200:8");
  const int64_t before = planner_.counters().evaluations;
  EXPECT_EQ(Look(), Runs{});
  EXPECT_EQ(planner_.counters().evaluations - before, 1);
}

TEST_F(PlannerTest, AReleaseWakesOnlyTheOwner) {
  for (const char* user : {"ann", "bob", "cleo"}) LimitGpus(user, 4);
  core::RunWithSteps& first = Submit("ann", "h200:4");
  for (const char* user : {"bob", "cleo"}) Submit(user, "h200:4");
  for (int i = 0; i < 300; ++i) {
    for (const char* user : {"ann", "bob", "cleo"}) Submit(user, "h200:4");
  }
  EXPECT_EQ(Look(), (Runs{1, 2, 3}));
  const PlannerCounters before = planner_.counters();
  End(first);
  EXPECT_EQ(Look(), Runs{4});
  EXPECT_EQ(planner_.counters().woken - before.woken, 2);  // the one that starts, and the next of its class
  EXPECT_EQ(planner_.counters().evaluations - before.evaluations, 2);
}

TEST_F(PlannerTest, TheFirstThatIsTooLargeReservesAndSmallOnesPassIfTheyEndInTime) {
  Submit("ann", "h200:24", absl::Hours(2));
  EXPECT_EQ(Look(), Runs{1});
  core::RunWithSteps& large = Submit("bob", "h200:32", absl::Hours(1));
  core::RunWithSteps& endless = Submit("cleo", "h200:8");
  Submit("cleo", "h200:8", absl::Hours(1));
  EXPECT_EQ(Look(), Runs{4});
  const auto held = Verdicts(endless);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].gate, core::GateKind::kCapacity);  // the last free node went to the short one
  EXPECT_EQ(Verdicts(large)[0].gate, core::GateKind::kCapacity);
  End(runs_.at(4));
  EXPECT_EQ(Look(), Runs{});
  EXPECT_EQ(Verdicts(endless)[0].gate, core::GateKind::kOrder);
  EXPECT_EQ(Verdicts(endless)[0].sentence,
            "the free cards are reserved for a job ahead, which starts in 2h at the latest; a time limit below that "
            "would let this one start now");
}

TEST_F(PlannerTest, WhoWaitsForQuotaReservesNothing) {
  LimitGpus("bob", 8);
  Submit("ann", "h200:24", absl::Hours(2));
  Submit("bob", "h200:32");
  Submit("cleo", "h200:8");
  EXPECT_EQ(Look(), (Runs{1, 3}));
  const auto verdicts = Verdicts(runs_.at(2));
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].sentence,
            "your GPUs: 0 of 8 in use, this job needs 32, more than the quota itself: an admin can raise it");
}

TEST_F(PlannerTest, ALoweredQuotaStopsNothingAndHoldsUntilBelow) {
  Submit("ann", "h200:16");
  EXPECT_EQ(Look(), Runs{1});
  LimitGpus("ann", 8);
  Submit("ann", "h200:1");
  EXPECT_EQ(Look(), Runs{});
  EXPECT_EQ(Verdicts(runs_.at(2))[0].sentence,
            "your GPUs: 16 of 8 in use (over by 8), this job needs 1; starts when 9 of them are released");
  End(runs_.at(1));
  EXPECT_EQ(Look(), Runs{2});
}

TEST_F(PlannerTest, AgingLetsTheOldOnePass) {
  Submit("ann", "h200:32");
  EXPECT_EQ(Look(), Runs{1});
  Submit("bob", "h200:32", absl::Hours(1), 50);
  now_ += absl::Hours(13);
  Submit("cleo", "h200:32", absl::Hours(1), 51);
  EXPECT_EQ(Look(), Runs{});
  End(runs_.at(1));
  EXPECT_EQ(Look(), Runs{2});
}

// --- Fair share -----------------------------------------------------------------------------------

class FairShareTest : public PlannerTest {
 protected:
  FairShareTest() { policy_.fair_share = true; }

  void Use(const std::string& owner, absl::Time ended, absl::Duration of_one_card) {
    planner_.AddUse(owner, absl::ToUnixMillis(ended), absl::ToInt64Milliseconds(of_one_card));
  }

  // As if it ran since then.
  void Meter(core::RunWithSteps& run, absl::Time since) {
    run.steps[0].attempt->meter.emplace().seen_at = since;
    planner_.Follow(run, run.steps[0], now_);
  }

  // Each takes the whole series, so that one starts at a time.
  Runs OneAfterTheOther() {
    Runs order;
    for (Runs started = Look(); !started.empty(); started = Look()) {
      order.insert(order.end(), started.begin(), started.end());
      End(runs_.at(started.front()));
    }
    return order;
  }
};

TEST_F(FairShareTest, WhoUsedLessLatelyGoesFirst) {
  Use("ann", now_, absl::Hours(6));
  Use("bob", now_ - absl::Hours(24 * 7), absl::Hours(10));  // counts as 5 by now
  for (const char* user : {"ann", "bob", "cleo", "cleo"}) Submit(user, "h200:32");
  EXPECT_EQ(OneAfterTheOther(), (Runs{3, 4, 2, 1}));
}

TEST_F(FairShareTest, PriorityStillComesFirst) {
  Use("ann", now_, absl::Hours(6));
  Submit("bob", "h200:32");
  Submit("ann", "h200:32", std::nullopt, 51);
  EXPECT_EQ(OneAfterTheOther(), (Runs{2, 1}));
}

TEST_F(FairShareTest, OffMeansBySubmission) {
  policy_.fair_share = false;
  Use("ann", now_, absl::Hours(6));
  for (const char* user : {"ann", "bob", "cleo"}) Submit(user, "h200:32");
  EXPECT_EQ(OneAfterTheOther(), (Runs{1, 2, 3}));
  EXPECT_TRUE(planner_.shares().empty());
}

TEST_F(FairShareTest, WhatRunsCountsInFull) {
  core::RunWithSteps& blocker = Submit("zoe", "h200:24");
  core::RunWithSteps& running = Submit("ann", "h200:8");
  EXPECT_EQ(Look(), (Runs{1, 2}));
  Use("bob", now_, absl::Hours(7));
  Submit("ann", "h200:24");
  Submit("bob", "h200:24");
  Meter(running, now_ - absl::Hours(1));  // 8 cards
  End(blocker);
  EXPECT_EQ(Look(), Runs{4});
}

TEST_F(FairShareTest, ANewOrderLetsAParkedOneGo) {
  Submit("zoe", "h200:24", absl::Hours(2));
  EXPECT_EQ(Look(), Runs{1});
  Use("bob", now_, absl::Hours(1));
  Use("cleo", now_, absl::Hours(2));
  core::RunWithSteps& parked = Submit("cleo", "h200:8");  // submitted before the one it waits for
  Submit("bob", "h200:32", absl::Hours(1));
  EXPECT_EQ(Look(), Runs{});
  ASSERT_EQ(Verdicts(parked).size(), 1u);
  EXPECT_EQ(Verdicts(parked)[0].gate, core::GateKind::kOrder);
  const int64_t before = planner_.counters().evaluations;
  Use("bob", now_, absl::Minutes(30));
  EXPECT_EQ(Look(), Runs{});
  EXPECT_EQ(planner_.counters().evaluations, before) << "the order of owners is the same";
  Use("bob", now_, absl::Hours(1));
  EXPECT_EQ(Look(), Runs{2});
}

TEST_F(FairShareTest, WhatRunsChangesTheOrderByItself) {
  Submit("zoe", "h200:16", absl::Hours(2));
  core::RunWithSteps& running = Submit("bob", "h200:8", absl::Hours(2));
  EXPECT_EQ(Look(), (Runs{1, 2}));
  const absl::Time begun = now_;
  Meter(running, begun);
  Use("cleo", now_, absl::Hours(1));  // what 8 cards use in 7.5 minutes
  Submit("bob", "h200:32", absl::Hours(1));
  Submit("cleo", "h200:8");
  Runs started = Look();
  for (int wakes = 0; started.empty() && wakes < 20; ++wakes) {
    now_ = planner_.NextWake().value();
    started = Look();
  }
  EXPECT_EQ(started, Runs{4});
  EXPECT_EQ(now_, begun + absl::Minutes(8));
}

TEST_F(FairShareTest, AgeLetsWhoUsedMorePassWithinOnePriority) {
  Submit("zoe", "h200:32", absl::Hours(100));
  EXPECT_EQ(Look(), Runs{1});
  const absl::Time submitted = now_;
  Use("ann", now_, absl::Hours(6));
  Submit("ann", "h200:32");
  now_ += absl::Hours(1);
  Submit("bob", "h200:32");
  EXPECT_EQ(Look(), Runs{});
  EXPECT_TRUE(planner_.reservations().contains({3, 0}));
  now_ = submitted + policy_.aging;
  EXPECT_EQ(Look(), Runs{});
  EXPECT_TRUE(planner_.reservations().contains({2, 0}));
  End(runs_.at(1));
  EXPECT_EQ(Look(), Runs{2});
}

TEST_F(FairShareTest, SummedUpByTheHourItIsTheSame) {
  Use("ann", now_ + absl::Minutes(1), absl::Hours(1));
  Use("ann", now_ + absl::Minutes(20), absl::Hours(2));
  Planner restarted(policy_, absl::UTCTimeZone(), OneSeries());
  const int64_t hour = core::EndHourUnixMs(absl::ToUnixMillis(now_ + absl::Minutes(1)));
  restarted.AddUse("ann", hour, absl::ToInt64Milliseconds(absl::Hours(3)));
  now_ += absl::Hours(1000);
  planner_.BeginTurn(now_);
  restarted.BeginTurn(now_);
  EXPECT_DOUBLE_EQ(planner_.shares().at("ann"), restarted.shares().at("ann"));
}

// --- Hints ----------------------------------------------------------------------------------------

TEST_F(PlannerTest, HintsAreWhatWouldStart) {
  Submit("ann", "h200:16", absl::Hours(2));
  EXPECT_EQ(Look(), Runs{1});
  const core::RunWithSteps& large = Submit("bob", "h200:32", absl::Hours(1));
  const core::RunWithSteps& endless = Submit("cleo", "h200:16");
  EXPECT_EQ(Look(), Runs{});
  EXPECT_EQ(HintsFor(planner_, large, large.steps[0], now_), std::vector<std::string>{"h200:16 would start now"});
  EXPECT_EQ(HintsFor(planner_, endless, endless.steps[0], now_),
            std::vector<std::string>{"a time limit of at most 2h would let it start now"});
}

TEST_F(PlannerTest, NoHintWhereTheStepsOwnGatesAreClosed) {
  core::RunWithSteps& run = Submit("ann", "h200:8");
  run.steps[0].hold.owner = true;
  planner_.Follow(run, run.steps[0], now_);
  EXPECT_EQ(HintsFor(planner_, run, run.steps[0], now_), std::vector<std::string>{});
}

TEST_F(PlannerTest, ADrainedNodeStartsNothingSaysSoAndWakesWhoWaitsWhenItIsBack) {
  planner_.Withhold({{"n1", {.cards = 0, .node = true, .why = {"n1 is drained by root: new disk"}}}});
  for (int i = 0; i < 3; ++i) Submit("ada", "h200:8");
  const core::RunWithSteps& waits = Submit("ben", "h200:8");
  EXPECT_EQ(Look(), (std::vector<int64_t>{1, 2, 3}));
  for (const auto& [n, run] : runs_) {
    if (!run.steps[0].attempt) continue;
    EXPECT_NE(run.steps[0].attempt->placement[0].ranks[0].node, "n1");
  }
  const auto verdicts = Verdicts(waits);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].gate, core::GateKind::kCapacity);
  EXPECT_EQ(verdicts[0].sentence,
            "h200 needs 1 node x 8 cards, 0 of 32 cards are free (n1 is drained by root: new disk); starts when cards "
            "are released");
  EXPECT_TRUE(Look().empty());
  planner_.Withhold({});
  EXPECT_EQ(Look(), (std::vector<int64_t>{4}));
}

TEST_F(PlannerTest, WhatCouldNotBeAdmittedHoldsNobodyUp) {
  Submit("ann", "h200:8");
  Submit("bob", "h200:8");
  planner_.BeginTurn(now_);
  const auto start = planner_.Next();
  ASSERT_EQ(start->step.run, 1);
  planner_.SetAside(start->step);
  EXPECT_EQ(planner_.Next()->step.run, 2);
}

}  // namespace
}  // namespace tp::plan
