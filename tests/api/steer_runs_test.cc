// SteerRuns over the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class SteerRunsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
    for (const int64_t n : {1, 2, 3}) Commit(QueuedRun(n, "ana"));
    loop_.OnCommand([](const loop::Command& command) -> absl::StatusOr<loop::Answer> {
      const auto* stop = std::get_if<loop::StopRun>(&command.action);
      if (stop != nullptr && stop->stored.run.n == 2) return FailedPrecondition("it has SUCCEEDED");
      return loop::Answer{.run = 3, .run_id = "train-3", .note = "done", .live = std::nullopt};
    });
  }

  grpc::Status Steer(const v1::SteerRunsRequest& request) {
    response_.Clear();
    return stub_->SteerRuns(As("ana").get(), request, &response_);
  }

  static v1::SteerRunsRequest Request(v1::Steering steering, std::initializer_list<const char*> runs) {
    v1::SteerRunsRequest request;
    request.set_request_id("r-1");
    request.set_steering(steering);
    for (const char* run : runs) request.add_runs(run);
    return request;
  }

  std::unique_ptr<v1::RunService::Stub> stub_;
  v1::SteerRunsResponse response_;
};

TEST_F(SteerRunsTest, EachIsAnsweredInTheOrderAskedFor) {
  ASSERT_TRUE(Steer(Request(v1::STEERING_STOP, {"3", "nobody-77", "2"})).ok());
  ASSERT_EQ(response_.runs_size(), 3);
  EXPECT_EQ(response_.runs(0).run(), "3");
  EXPECT_EQ(response_.runs(0).run_id(), "train-3");
  EXPECT_EQ(response_.runs(0).note(), "done");
  EXPECT_EQ(response_.runs(0).code(), 0);
  EXPECT_EQ(response_.runs(1).code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(response_.runs(1).detail().reason(), "RUN_NOT_FOUND");
  EXPECT_EQ(response_.runs(2).code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(response_.runs(2).message(), "it has SUCCEEDED");
  EXPECT_EQ(response_.runs(2).run_id(), "");
}

TEST_F(SteerRunsTest, EachIsACommandWithAnIdOfItsOwn) {
  ASSERT_TRUE(Steer(Request(v1::STEERING_PAUSE, {"1", "2"})).ok());
  const std::vector<loop::Command> commands = loop_.commands();
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_NE(commands[0].request_id, commands[1].request_id);
  EXPECT_EQ(std::get<loop::PauseRun>(commands[1].action).stored.run.n, 2);
  EXPECT_EQ(commands[0].who.user, "ana");
  EXPECT_EQ(commands[0].method, "/tp.v1.RunService/SteerRuns STEERING_PAUSE");
}

TEST_F(SteerRunsTest, ALoopThatEndsFailsTheCallSoThatItIsRepeated) {
  loop_.OnCommand([](const loop::Command&) { return Unavailable("tpd is stopping: try again"); });
  EXPECT_EQ(Steer(Request(v1::STEERING_STOP, {"1", "3"})).error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(SteerRunsTest, LargeRunsAreDecidedSomeAtATime) {
  for (const int64_t n : {11, 12, 13, 14, 15}) {
    core::RunWithSteps run = QueuedRun(n, "ana");
    for (int32_t i = 1; i < 900; ++i) {
      run.steps.push_back(run.steps[0]);
      run.steps.back().ref.step = i;
    }
    Commit(run);
  }
  ASSERT_TRUE(Steer(Request(v1::STEERING_PAUSE, {"11", "12", "13", "14", "15"})).ok());
  ASSERT_EQ(response_.runs_size(), 5);
  for (const v1::SteeredRun& run : response_.runs()) EXPECT_EQ(run.run_id(), "train-" + run.run());
  EXPECT_EQ(loop_.commands().size(), 5U);
  EXPECT_EQ(loop_.bulks(), 2);
}

TEST_F(SteerRunsTest, HoldAndReleaseAreUpdates) {
  ASSERT_TRUE(Steer(Request(v1::STEERING_HOLD, {"1"})).ok());
  ASSERT_TRUE(Steer(Request(v1::STEERING_RELEASE, {"1"})).ok());
  const std::vector<loop::Command> commands = loop_.commands();
  EXPECT_EQ(std::get<loop::UpdateRun>(commands.at(0).action).revision.hold, true);
  EXPECT_EQ(std::get<loop::UpdateRun>(commands.at(1).action).revision.hold, false);
}

TEST_F(SteerRunsTest, FormIsChecked) {
  EXPECT_EQ(Steer(Request(v1::STEERING_UNSPECIFIED, {"1"})).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Steer(Request(static_cast<v1::Steering>(99), {"1"})).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Steer(Request(v1::STEERING_STOP, {})).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::SteerRunsRequest many = Request(v1::STEERING_STOP, {});
  for (int i = 0; i < 1001; ++i) many.add_runs("1");
  EXPECT_THAT(Steer(many).error_message(), HasSubstr("at most 1000"));
  EXPECT_TRUE(loop_.commands().empty());
}

}  // namespace
}  // namespace tp::api
