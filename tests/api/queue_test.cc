// ListQueue and ExplainRun over the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include <fmt/format.h>

#include "api/queue.h"
#include "sample_registry.h"
#include "server_fixture.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using store::Role;
using testing::ElementsAre;
using testing::HasSubstr;

class QueueTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
    registry_ = SampleRegistry();
  }

  static core::RunWithSteps Waiting(int64_t n, const std::string& owner, const std::string& profile = "h200:8") {
    core::RunWithSteps run = QueuedRun(n, owner);
    run.run.created_at += absl::Seconds(n);
    run.steps[0].spec.profiles = {profile};
    return run;
  }

  // With a gate that names somebody.
  void CommitWaiting(const core::RunWithSteps& run, std::vector<std::string> hints = {}) {
    loop::LiveRun live{.run = run, .gates = {{}}, .shapes = {{}}, .hints = {std::move(hints)}};
    live.gates[0].push_back({.gate = core::GateKind::kCapacity,
                             .sentence = "bob's big-7 has them",
                             .opens_at = std::nullopt,
                             .since = absl::FromUnixSeconds(1'700'000'100)});
    live.gates[0].push_back({.gate = core::GateKind::kWindow, .sentence = "h200 opens", .opens_at = {}, .since = {}});
    CommitLive(live);
  }

  v1::ListQueueResponse Queue(const v1::ListQueueRequest& request, const std::string& user,
                              Role role = Role::kOperator) {
    v1::ListQueueResponse response;
    const grpc::Status status = stub_->ListQueue(As(user, role).get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::StepExplanation Explained(const std::string& run, const std::string& user, Role role = Role::kUser) {
    v1::ExplainRunRequest request;
    request.set_run(run);
    v1::ExplainRunResponse response;
    const grpc::Status status = stub_->ExplainRun(As(user, role).get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.steps_size() == 1 ? response.steps(0) : v1::StepExplanation();
  }

  static std::vector<std::string> Ids(const v1::ListQueueResponse& response) {
    std::vector<std::string> ids;
    for (const v1::QueueEntry& entry : response.entries()) ids.push_back(entry.run());
    return ids;
  }

  std::unique_ptr<v1::RunService::Stub> stub_;
};

TEST_F(QueueTest, ByPriorityThenSubmission) {
  core::RunWithSteps urgent = Waiting(3, "ana");
  urgent.run.priority = 60;
  CommitWaiting(Waiting(2, "ana"));
  CommitWaiting(urgent);
  CommitWaiting(Waiting(1, "bob", "h200:16"));
  CommitLive({.run = RunningRun(4, "ana"), .gates = {{}}, .shapes = {{}}});
  const v1::ListQueueResponse queue = Queue({}, "olga");
  EXPECT_THAT(Ids(queue), ElementsAre("train-3", "train-1", "train-2"));
  EXPECT_EQ(queue.total_count(), 3);
  EXPECT_EQ(queue.total_cards(), 32);
  const v1::QueueEntry& second = queue.entries(1);
  EXPECT_EQ(second.position(), 2);
  EXPECT_EQ(second.owner(), "bob");
  EXPECT_EQ(second.shape(), "h200:16 = 2 nodes x 8");
  EXPECT_EQ(second.cards(), 16);
  EXPECT_THAT(second.series(), ElementsAre("h200"));
  EXPECT_EQ(second.gate().gate(), v1::GATE_CAPACITY);
  EXPECT_EQ(second.gate().sentence(), "bob's big-7 has them");
  EXPECT_EQ(second.gate().since().seconds(), 1'700'000'100);
  EXPECT_EQ(second.gate_count(), 2);
}

class FairQueueTest : public QueueTest {
 protected:
  void SetUp() override {
    policy_.fair_share = true;
    QueueTest::SetUp();
  }
};

TEST_F(FairQueueTest, ByPriorityThenShareThenSubmission) {
  loop::Standings standings;
  standings.shares = {{"ana", 100}, {"bob", 1}};
  loop_.SetStandings(standings);
  core::RunWithSteps urgent = Waiting(4, "ana");
  urgent.run.priority = 60;
  for (const core::RunWithSteps& run : {Waiting(1, "ana"), Waiting(2, "bob"), Waiting(3, "cat"), urgent}) {
    CommitWaiting(run);
  }
  EXPECT_THAT(Ids(Queue({}, "olga")), ElementsAre("train-4", "train-3", "train-2", "train-1"));
  EXPECT_EQ(Explained("train-1", "ana").position(), 4);
}

TEST_F(QueueTest, WaitingRaisesThePriority) {
  core::RunWithSteps old = Waiting(2, "ana");
  old.run.created_at = absl::Now() - core::Policy{}.aging * 3 - absl::Minutes(1);
  core::RunWithSteps urgent = Waiting(1, "ana");
  urgent.run.created_at = absl::Now();
  urgent.run.priority = 52;
  CommitWaiting(urgent);
  CommitWaiting(old);
  const v1::ListQueueResponse queue = Queue({}, "ana", Role::kUser);
  EXPECT_THAT(Ids(queue), ElementsAre("train-2", "train-1"));
  EXPECT_EQ(queue.entries(0).priority(), 50);
  EXPECT_EQ(queue.entries(0).effective_priority(), 53);
}

TEST_F(QueueTest, OthersAreSizesOnly) {
  CommitWaiting(Waiting(1, "bob"));
  CommitWaiting(Waiting(2, "ana"));
  const v1::ListQueueResponse queue = Queue({}, "ana", Role::kUser);
  ASSERT_EQ(queue.entries_size(), 2);
  const v1::QueueEntry& other = queue.entries(0);
  EXPECT_EQ(other.run() + other.owner() + other.step_name() + other.gate().sentence(), "");
  EXPECT_EQ(other.step(), 0);
  EXPECT_EQ(other.shape(), "h200:8 = 1 node x 8");
  EXPECT_EQ(other.gate().gate(), v1::GATE_CAPACITY);
  EXPECT_EQ(queue.entries(1).run(), "train-2");
  EXPECT_EQ(queue.entries(1).gate().sentence(), "bob's big-7 has them");
}

TEST_F(QueueTest, OnlyStepsThatAreDue) {
  core::RunWithSteps pipeline = RunningRun(1, "ana");
  for (const auto when : {core::AfterWhen::kSuccess, core::AfterWhen::kAlways}) {
    core::Step step = QueuedRun(1, "ana").steps[0];
    step.ref.step = static_cast<int32_t>(pipeline.steps.size());
    step.spec.name = "later-" + std::to_string(step.ref.step);
    step.spec.profiles = {"h200:8"};
    step.spec.after = core::After{.step = 0, .when = when};
    pipeline.steps.push_back(step);
  }
  pipeline.steps[2].spec.after.reset();  // beside the first
  CommitLive({.run = pipeline, .gates = {{}, {}, {}}, .shapes = {{}, {}, {}}});
  const v1::ListQueueResponse queue = Queue({}, "ana", Role::kUser);
  ASSERT_EQ(queue.entries_size(), 1);
  EXPECT_EQ(queue.entries(0).step_name(), "later-2");
  EXPECT_EQ(queue.entries(0).step(), 3);
  EXPECT_FALSE(queue.entries(0).has_gate()) << "about to launch";
}

TEST_F(QueueTest, OfOneSeriesInPages) {
  registry_.series["a100"] = registry_.series["h200"];
  registry_.series["a100"].name = "a100";
  registry_.profiles["a100"] = registry_.profiles["h200"];
  registry_.profiles["a100"].name = registry_.profiles["a100"].series = "a100";
  for (int n = 1; n <= 6; ++n) CommitWaiting(Waiting(n, "ana", n % 2 == 0 ? "h200:8" : "a100:8"));
  v1::ListQueueRequest request;
  request.set_series("h200");
  request.set_page_size(2);
  const v1::ListQueueResponse first = Queue(request, "ana", Role::kUser);
  EXPECT_THAT(Ids(first), ElementsAre("train-2", "train-4"));
  EXPECT_EQ(first.total_count(), 3);
  request.set_page_token(first.next_page_token());
  const v1::ListQueueResponse second = Queue(request, "ana", Role::kUser);
  EXPECT_THAT(Ids(second), ElementsAre("train-6"));
  EXPECT_EQ(second.entries(0).position(), 3);
  EXPECT_EQ(second.next_page_token(), "");
  request.set_series("a100");
  v1::ListQueueResponse response;
  EXPECT_EQ(stub_->ListQueue(As("ana").get(), request, &response).error_code(), StatusCode::INVALID_ARGUMENT)
      << "a token of another list";
  request.set_series("a10");
  const grpc::Status status = stub_->ListQueue(As("ana").get(), request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("did you mean a100?"));
}

TEST_F(QueueTest, AShapeThatDoesNotResolveStaysInSight) {
  core::RunWithSteps run = Waiting(1, "ana", "gone:8");
  run.steps[0].hold.shape = "profile gone is not in the registry";
  CommitWaiting(run);
  const v1::ListQueueResponse queue = Queue({}, "ana", Role::kUser);
  ASSERT_EQ(queue.entries_size(), 1);
  EXPECT_EQ(queue.entries(0).shape(), "gone:8");
  EXPECT_EQ(queue.entries(0).cards(), 0);
}

TEST_F(QueueTest, WhySaysWhatIsAheadAndWhatWouldStart) {
  registry_.series["a100"] = registry_.series["h200"];
  registry_.series["a100"].name = "a100";
  registry_.profiles["a100"] = registry_.profiles["h200"];
  registry_.profiles["a100"].name = registry_.profiles["a100"].series = "a100";
  CommitWaiting(Waiting(1, "bob", "h200:16"));
  CommitWaiting(Waiting(2, "bob", "a100:8"));
  core::RunWithSteps held = Waiting(3, "ana");
  held.steps[0].hold.owner = true;
  CommitWaiting(held);
  CommitWaiting(Waiting(4, "ana"));
  CommitWaiting(Waiting(5, "ana"), {"h200:8 would start now"});
  CommitWaiting(Waiting(6, "ana"));
  const v1::StepExplanation step = Explained("train-5", "ana");
  EXPECT_EQ(step.index(), 1);
  EXPECT_EQ(step.name(), "main");
  EXPECT_EQ(step.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(step.gates_size(), 2);
  EXPECT_THAT(step.hints(), ElementsAre("h200:8 would start now"));
  EXPECT_EQ(step.position(), 4);
  EXPECT_EQ(step.queue_length(), 5);
  EXPECT_EQ(step.ahead_count(), 2) << "what is held is not before anybody";
  EXPECT_EQ(step.ahead_cards(), 24);
  ASSERT_EQ(step.ahead_size(), 2);
  EXPECT_EQ(step.ahead(0).run(), "") << "somebody else's";
  EXPECT_EQ(step.ahead(0).cards(), 16);
  EXPECT_EQ(step.ahead(1).run(), "train-4");
  EXPECT_EQ(step.ahead(1).position(), 3);
  EXPECT_EQ(Explained("train-5", "olga", Role::kOperator).ahead(0).run(), "train-1");
}

std::vector<std::string> Told(const absl::StatusOr<std::vector<WaitingStep>>& queue) {
  EXPECT_TRUE(queue.ok()) << queue.status();
  std::vector<std::string> told;
  for (const WaitingStep& step : *queue) {
    told.push_back(fmt::format("{} {} {} {} {} {}", step.ref.run, step.owner, step.effective_priority, step.share,
                               step.held, step.wanted->shape));
  }
  return told;
}

TEST_F(QueueTest, RenewedByWhatChangedItIsAsIfItWereReadAgain) {
  std::mt19937 random(7);
  const auto pick = [&random](int to) { return std::uniform_int_distribution<int>(0, to)(random); };
  const core::Shares shares = {{"ana", 3}, {"bob", 1}};
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  std::vector<WaitingStep> queue;
  for (int round = 0; round < 60; ++round) {
    std::set<int64_t> changed;
    for (int i = pick(4); i >= 0; --i) {
      core::RunWithSteps run = Waiting(1 + pick(30), pick(1) == 0 ? "ana" : "bob", pick(1) == 0 ? "h200:8" : "x:1");
      run.run.priority = 50 + pick(2);
      run.steps[0].hold.owner = pick(3) == 0;
      Commit(pick(3) == 0 ? EndedRun(run, core::JobState::kStopped) : run);
      changed.insert(run.run.n);
    }
    now += absl::Hours(pick(12));
    auto renewed = RenewQueue(queue, changed, store_, registry_, policy_, shares, now);
    ASSERT_EQ(Told(renewed), Told(ReadQueue(store_, registry_, policy_, shares, now))) << round;
    queue = *std::move(renewed);
  }
}

TEST_F(QueueTest, WhyOfARunThatIsNotQueued) {
  CommitLive({.run = RunningRun(1, "ana"), .gates = {{}}, .shapes = {{}}});
  const v1::StepExplanation step = Explained("train-1", "ana");
  EXPECT_EQ(step.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(step.position(), 0);
  EXPECT_EQ(step.ahead_count(), 0);
}

}  // namespace
}  // namespace tp::api
