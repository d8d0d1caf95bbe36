// Estimates of starts over the wire, and what is remembered of how far off they were.
#include "api/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_registry.h"
#include "server_fixture.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

using store::Role;
using testing::HasSubstr;

class ForecastTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
    registry_ = SampleRegistry();
    input_.now = now_;
    input_.registry = std::make_shared<const core::Registry>(registry_);
    input_.use[""] = {};
  }

  // All three nodes are held by it.
  void AddHolder(int64_t n, const std::string& owner, std::optional<absl::Duration> left) {
    plan::ForecastStep& step = input_.holding.emplace_back();
    step.ref = {n, 0};
    step.run_id = "big-" + std::to_string(n);
    step.owner = owner;
    step.profiles = {"h200:24"};
    step.limit = left;
    step.counted_end = now_ + left.value_or(absl::Hours(24 * 30));
    if (left) step.frees_at = step.counted_end;
    PoolPlacement& pool = step.placement.emplace_back();
    pool.series = pool.profile = "h200";
    pool.gpus_per_node = 8;
    for (const char* node : {"node-1", "node-2", "node-3"}) {
      pool.ranks.push_back({node, "127.0.0.1", {0, 1, 2, 3, 4, 5, 6, 7}});
    }
  }

  core::RunWithSteps AddWaiting(int64_t n, const std::string& owner, absl::Duration ago = absl::Minutes(5)) {
    core::RunWithSteps run = QueuedRun(n, owner);
    run.run.created_at = run.steps[0].entered_at = now_ - ago;
    run.steps[0].spec.profiles = {"h200:8"};
    plan::ForecastStep& step = input_.waiting.emplace_back();
    step.ref = {n, 0};
    step.run_id = run.run.id();
    step.owner = owner;
    step.submitted = run.run.created_at;
    step.profiles = {"h200:8"};
    step.limit = absl::Hours(1);
    loop_.SetForecast(input_);
    CommitLive({.run = run, .gates = {{}}, .shapes = {{}}});
    return run;
  }

  v1::StartEstimate EstimateOf(const std::string& run, const std::string& user, Role role = Role::kUser) {
    v1::GetRunRequest request;
    request.set_run(run);
    v1::GetRunResponse response;
    const grpc::Status status = stub_->GetRun(As(user, role).get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.run().steps(0).estimate();
  }

  void Start(int64_t n, absl::Time at) {
    store::EventRow event;
    event.revision = ++revision_;
    event.at = at;
    event.run = n;
    event.event = "admitted";
    event.from = core::JobState::kQueued;
    event.to = core::JobState::kSubmitted;
    server_->OnCommit({.revision = revision_, .events = {event}});
  }

  absl::Time now_ = absl::Now();
  plan::ForecastInput input_;
  int64_t revision_ = 1'000'000;
  std::unique_ptr<v1::RunService::Stub> stub_;
};

TEST_F(ForecastTest, OnEveryScreenThatShowsAQueuedRun) {
  AddHolder(1, "bob", absl::Hours(2));
  AddWaiting(2, "ana");
  const int64_t at = absl::ToUnixSeconds(now_ + absl::Hours(2));
  EXPECT_EQ(EstimateOf("train-2", "ana").starts_at().seconds(), at);
  EXPECT_FALSE(EstimateOf("train-2", "ana").has_so_far()) << "nothing has started yet";
  v1::ListRunsResponse runs;
  ASSERT_TRUE(stub_->ListRuns(As("ana").get(), {}, &runs).ok());
  EXPECT_EQ(runs.runs(0).steps(0).estimate().starts_at().seconds(), at);
  v1::ListQueueResponse queue;
  ASSERT_TRUE(stub_->ListQueue(As("ana").get(), {}, &queue).ok());
  EXPECT_EQ(queue.entries(0).estimate().starts_at().seconds(), at);
  EXPECT_FALSE(queue.has_estimates_so_far());
  v1::ExplainRunRequest why;
  why.set_run("train-2");
  v1::ExplainRunResponse explained;
  ASSERT_TRUE(stub_->ExplainRun(As("ana").get(), why, &explained).ok());
  EXPECT_EQ(explained.steps(0).estimate().starts_at().seconds(), at);
}

TEST_F(ForecastTest, WhyThereIsNoneNamesARunToThoseWhoMayReadIt) {
  AddHolder(1, "bob", std::nullopt);
  AddWaiting(2, "ana");
  EXPECT_EQ(EstimateOf("train-2", "ana").why_none(), "a job ahead has no time limit");
  EXPECT_EQ(EstimateOf("train-2", "olga", Role::kOperator).why_none(), "big-1 ahead has no time limit");
}

TEST_F(ForecastTest, WhatIsHeldOrNotDueHasNone) {
  core::RunWithSteps run = QueuedRun(2, "ana");
  run.steps[0].hold.owner = true;
  core::Step later = run.steps[0];
  later.ref.step = 1;
  later.spec.name = "eval";
  later.hold = {};
  later.spec.after = core::After{.step = 0, .when = core::AfterWhen::kSuccess};
  run.steps.push_back(later);
  input_.waiting.clear();
  loop_.SetForecast(input_);
  CommitLive({.run = run, .gates = {{}, {}}, .shapes = {{}, {}}});
  v1::GetRunRequest request;
  request.set_run("train-2");
  v1::GetRunResponse response;
  ASSERT_TRUE(stub_->GetRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().steps(0).estimate().why_none(), "it is held");
  EXPECT_EQ(response.run().steps(1).estimate().why_none(), "it waits for another step or run");
}

TEST_F(ForecastTest, WithoutAForecastThePagesAreThere) {
  CommitLive({.run = QueuedRun(2, "ana"), .gates = {{}}, .shapes = {{}}});
  EXPECT_EQ(EstimateOf("train-2", "ana").why_none(), "it is not worked out yet");
}

TEST_F(ForecastTest, StartsAreComparedWithTheFirstEstimate) {
  AddHolder(1, "bob", absl::Hours(2));
  AddWaiting(2, "ana");
  AddWaiting(3, "ana", absl::ZeroDuration());
  ASSERT_TRUE(EstimateOf("train-3", "ana").has_starts_at()) << "of a turn in which values were taken";
  Start(2, now_ + absl::Minutes(100));
  input_.waiting.erase(input_.waiting.begin());
  loop_.SetForecast(input_);
  const v1::EstimateErrors errors = EstimateOf("train-3", "ana").so_far();
  EXPECT_EQ(errors.starts(), 1);
  EXPECT_EQ(errors.median_off().seconds(), 20 * 60);
  EXPECT_EQ(errors.bias().seconds(), -20 * 60);
  Start(2, now_ + absl::Minutes(100));
  EXPECT_EQ(EstimateOf("train-3", "ana").so_far().starts(), 1) << "it had no estimate since";
}

TEST_F(ForecastTest, ManyWhoAskAtOnceGetOne) {
  AddHolder(1, "bob", absl::Hours(2));
  AddWaiting(2, "ana");
  EXPECT_TRUE(EstimateOf("train-2", "ana").has_starts_at());
  const int before = loop_.forecasts();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(EstimateOf("train-2", "ana").has_starts_at());
  EXPECT_LE(loop_.forecasts() - before, 2);
}

// --- Which steps ---------------------------------------------------------------------------------------

std::vector<WaitingStep> Queue(int steps, const std::string& series) {
  const auto wanted = std::make_shared<const WantedCards>(WantedCards{"", 8, {series}});
  std::vector<WaitingStep> queue(static_cast<size_t>(steps));
  for (int i = 0; i < steps; ++i) {
    queue[static_cast<size_t>(i)].ref = {i + 1, 0};
    queue[static_cast<size_t>(i)].wanted = wanted;
  }
  return queue;
}

TEST(ChooseStepsTest, TheFirstOfEachSeries) {
  std::vector<WaitingStep> queue = Queue(kEstimatedOfSeries + 50, "h200");
  queue[0].held = true;
  for (WaitingStep& step : Queue(3, "a100")) {
    step.ref.run += 1000;
    queue.push_back(step);
  }
  const StepsToEstimate chosen = ChooseSteps(queue);
  EXPECT_EQ(chosen.steps.size(), static_cast<size_t>(kEstimatedOfSeries + 3));
  EXPECT_EQ(chosen.steps.front().run, 2);
  EXPECT_EQ(chosen.steps.back().run, 1003);
  EXPECT_TRUE(chosen.left_out);
  EXPECT_FALSE(ChooseSteps(Queue(kEstimatedOfSeries, "h200")).left_out);
}

}  // namespace
}  // namespace tp::api
