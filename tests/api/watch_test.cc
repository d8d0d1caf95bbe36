#include <gtest/gtest.h>

#include "server_fixture.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

class WatchTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
    As("ana");  // the token is in the store before anything is watched
  }

  static loop::LiveRun Live(core::RunWithSteps run) { return {.run = std::move(run), .gates = {{}}, .shapes = {{}}}; }

  std::unique_ptr<v1::RunService::Stub> stub_;
};

TEST_F(WatchTest, ARunFromNowToItsEnd) {
  CommitLive(Live(QueuedRun(1, "ana")));
  const auto context = As("ana");
  v1::WatchRunRequest request;
  request.set_run("train-1");
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_QUEUED);
  EXPECT_EQ(response.revision(), 1);
  CommitLive(Live(RunningRun(1, "ana")));
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_RUNNING);
  loop_.Forget(1);
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_SUCCEEDED);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(WatchTest, ARunThatIsOverIsShownOnce) {
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kFailed));
  const auto context = As("ana");
  v1::WatchRunRequest request;
  request.set_run("1");
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_FAILED);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(WatchTest, GatesChangeWithoutAnEvent) {
  CommitLive(Live(QueuedRun(1, "ana")));
  const auto context = As("ana");
  v1::WatchRunRequest request;
  request.set_run("1");
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  loop::LiveRun held = Live(QueuedRun(1, "ana"));
  held.gates = {{{core::GateKind::kCapacity, "none is free", {}, {}}}};
  loop_.SetLive(held);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.run().reason(), "CAPACITY: none is free");
  context->TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(WatchTest, AnUnknownRunIsRefused) {
  const auto context = As("ana");
  v1::WatchRunRequest request;
  request.set_run("77");
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WatchTest, EventsAfterARevisionAndThenNewOnes) {
  for (int64_t n = 1; n <= 5; ++n) Commit(QueuedRun(n, "ana"));
  const auto context = As("ana");
  v1::WatchEventsRequest request;
  request.set_after_revision(2);
  const auto reader = stub_->WatchEvents(context.get(), request);
  v1::WatchEventsResponse response;
  for (int64_t revision = 3; revision <= 5; ++revision) {
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.event().revision(), revision);
  }
  Commit(RunningRun(1, "ana"), "observed");
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.event().revision(), 6);
  EXPECT_EQ(response.event().run(), 1);
  EXPECT_EQ(response.event().event(), "observed");
  context->TryCancel();
}

TEST_F(WatchTest, ARevisionOfTheFutureMeansResync) {
  Commit(QueuedRun(1, "ana"));
  const auto context = As("ana");
  v1::WatchEventsRequest request;
  request.set_after_revision(1000);
  const auto reader = stub_->WatchEvents(context.get(), request);
  v1::WatchEventsResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.resync(), 1);
  Commit(QueuedRun(2, "ana"));
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.event().revision(), 2);
  context->TryCancel();
}

TEST_F(WatchTest, ManyFollowersSeeEveryEventInOrder) {
  constexpr int kFollowers = 20;
  constexpr int64_t kEvents = 300;
  Commit(QueuedRun(1, "ana"));
  std::vector<std::thread> followers;
  for (int i = 0; i < kFollowers; ++i) {
    followers.emplace_back([this, context = As("ana")] {
      v1::WatchEventsRequest request;
      request.set_after_revision(1);
      const auto reader = stub_->WatchEvents(context.get(), request);
      v1::WatchEventsResponse response;
      for (int64_t revision = 2; revision <= kEvents; ++revision) {
        ASSERT_TRUE(reader->Read(&response));
        ASSERT_EQ(response.event().revision(), revision);
      }
      context->TryCancel();
    });
  }
  for (int64_t n = 2; n <= kEvents; ++n) Commit(QueuedRun(n, "ana"));
  for (std::thread& follower : followers) follower.join();
}

TEST_F(WatchTest, TheServerEndsWithStreamsOpen) {
  CommitLive(Live(RunningRun(1, "ana")));
  const auto context = As("ana");
  v1::WatchRunRequest request;
  request.set_run("1");
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server_->Stop();
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace tp::api
