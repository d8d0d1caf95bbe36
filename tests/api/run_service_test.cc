#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/request.h"
#include "server_fixture.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class RunServiceTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
  }

  static v1::SubmitRunRequest TrueRequest(const std::string& request_id) {
    v1::SubmitRunRequest request;
    request.set_request_id(request_id);
    request.set_name("train");
    request.add_steps()->add_argv("true");
    return request;
  }

  // The loop makes run `n` of every submission.
  void AcceptSubmissions(int64_t n) {
    loop_.OnCommand([this, n](const loop::Command& command) -> absl::StatusOr<loop::Answer> {
      core::RunWithSteps run = QueuedRun(n, command.who.user);
      run.steps[0].spec = std::get<loop::SubmitRun>(command.action).steps[0];
      loop::LiveRun live{.run = run, .gates = {{}}, .shapes = {{}}};
      CommitLive(live);
      return loop::Answer{.run = n, .run_id = run.run.id(), .note = "first note\nsecond note", .live = live};
    });
  }

  std::unique_ptr<v1::RunService::Stub> stub_;
};

TEST_F(RunServiceTest, ARecipeFillsInWhatTheStepLeavesOpen) {
  registry_.recipes["export"] = {.description = "",
                                 .argv = {"python3", "export.py"},
                                 .profiles = {"h200:8"},
                                 .image = "exporter",
                                 .env = {{"A", "recipe"}, {"B", "recipe"}},
                                 .time_limit = absl::Minutes(10)};
  AcceptSubmissions(7);
  v1::SubmitRunRequest request = TrueRequest("r-1");
  request.mutable_steps(0)->set_name("main");
  v1::StepSpec& step = *request.add_steps();
  step.set_name("export");
  step.set_recipe("export");
  (*step.mutable_env())["A"] = "tp.yaml";
  v1::SubmitRunResponse response;
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::vector<loop::Command> commands = loop_.commands();
  const auto& submit = std::get<loop::SubmitRun>(commands.at(0).action);
  ASSERT_EQ(submit.steps.size(), 2u);
  EXPECT_THAT(submit.steps[1].argv, ElementsAre("python3", "export.py"));
  EXPECT_THAT(submit.steps[1].profiles, ElementsAre("h200:8"));
  EXPECT_EQ(submit.steps[1].image, "exporter");
  EXPECT_EQ(submit.steps[1].env.at("A"), "tp.yaml");
  EXPECT_EQ(submit.steps[1].env.at("B"), "recipe");
  EXPECT_EQ(submit.steps[1].time_limit, absl::Minutes(10));
  EXPECT_EQ(submit.steps[1].after, (core::After{0, core::AfterWhen::kSuccess}));

  request.set_request_id("r-2");
  request.mutable_steps(1)->set_recipe("exprt");
  const grpc::Status unknown = stub_->SubmitRun(As("ana").get(), request, &response);
  EXPECT_EQ(unknown.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error_message(),
              HasSubstr("no recipe is called 'exprt': did you mean export? recipes here are export"));
}

TEST_F(RunServiceTest, SubmitGoesThroughTheLoop) {
  AcceptSubmissions(7);
  v1::SubmitRunResponse response;
  const v1::SubmitRunRequest request = TrueRequest("r-1");
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.run().id(), "train-7");
  EXPECT_EQ(response.run().owner(), "ana");
  EXPECT_EQ(response.run().reason(), "no gate is closed: it is about to launch");
  EXPECT_THAT(response.notes(), ElementsAre("first note", "second note"));
  const std::vector<loop::Command> commands = loop_.commands();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0].who, (loop::Principal{"ana", store::Role::kUser}));
  EXPECT_EQ(commands[0].request_id, "r-1");
  EXPECT_EQ(commands[0].method, "/tp.v1.RunService/SubmitRun");
  EXPECT_EQ(commands[0].body_sha256, BodySha256(commands[0].method, request));
}

TEST_F(RunServiceTest, WhatTheLoopRefusesIsToldAsItIs) {
  loop_.OnCommand([](const loop::Command&) { return InvalidArgument("h200:12 is no multiple of 8: ask for 8 or 16"); });
  v1::SubmitRunResponse response;
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), TrueRequest("r-1"), &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "h200:12 is no multiple of 8: ask for 8 or 16");
}

TEST_F(RunServiceTest, BadFormNeverReachesTheLoop) {
  v1::SubmitRunResponse response;
  v1::SubmitRunRequest no_id = TrueRequest("");
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), no_id, &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).field(), "request_id");
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(RunServiceTest, DryRunNeedsNoRequestIdAndLeavesNone) {
  loop_.OnDryRun([](const loop::DryRun& dry_run) {
    EXPECT_EQ(dry_run.who.user, "ana");
    loop::LiveRun live{.run = QueuedRun(9, "ana"), .gates = {{}}, .shapes = {{}}};
    return loop::Answer{.run = 0, .run_id = "", .note = "", .live = live};
  });
  v1::SubmitRunRequest request = TrueRequest("");
  request.set_dry_run(true);
  v1::SubmitRunResponse response;
  EXPECT_TRUE(stub_->SubmitRun(As("ana").get(), request, &response).ok());
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(RunServiceTest, ARepeatedRequestGetsTheSameAnswerWithoutTheLoop) {
  AcceptSubmissions(7);
  const v1::SubmitRunRequest request = TrueRequest("r-1");
  Commit(EndedRun(QueuedRun(7, "ana"), core::JobState::kStopped));
  CommitRequest({.principal = "ana",
                 .request_id = "r-1",
                 .method = "/tp.v1.RunService/SubmitRun",
                 .body_sha256 = BodySha256("/tp.v1.RunService/SubmitRun", request),
                 .run = 7,
                 .note = "told before"});
  v1::SubmitRunResponse response;
  ASSERT_TRUE(stub_->SubmitRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().id(), "train-7");
  EXPECT_THAT(response.notes(), ElementsAre("told before"));
  EXPECT_TRUE(loop_.commands().empty());

  v1::SubmitRunRequest other = request;
  other.set_name("other");
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), other, &response);
  EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(DetailOf(status).reason(), "REQUEST_ID_REUSED");

  ASSERT_TRUE(stub_->SubmitRun(As("bob").get(), request, &response).ok()) << "ids are each caller's own";
  EXPECT_EQ(loop_.commands().size(), 1u);
}

TEST_F(RunServiceTest, AnUnknownSnapshotIsRefused) {
  v1::SubmitRunRequest request = TrueRequest("r-1");
  request.set_snapshot_id(std::string(64, 'a'));
  v1::SubmitRunResponse response;
  const grpc::Status status = stub_->SubmitRun(As("ana").get(), request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailOf(status).reason(), "SNAPSHOT_NOT_FOUND");
  request.set_snapshot_id(StoreSnapshot("print(1)"));
  AcceptSubmissions(1);
  EXPECT_TRUE(stub_->SubmitRun(As("ana").get(), request, &response).ok());
}

TEST_F(RunServiceTest, RunsAreFoundByNumberNameAndLast) {
  Commit(EndedRun(QueuedRun(1, "ana", "first"), core::JobState::kStopped));
  Commit(EndedRun(QueuedRun(2, "ana", "second"), core::JobState::kStopped));
  Commit(EndedRun(QueuedRun(3, "bob", "third"), core::JobState::kStopped));
  const auto get = [this](const std::string& selector) {
    v1::GetRunRequest request;
    request.set_run(selector);
    v1::GetRunResponse response;
    const grpc::Status status = stub_->GetRun(As("ana").get(), request, &response);
    return status.ok() ? response.run().id() : std::to_string(status.error_code());
  };
  EXPECT_EQ(get("1"), "first-1");
  EXPECT_EQ(get("first-1"), "first-1");
  EXPECT_EQ(get("third-3"), "third-3");
  EXPECT_EQ(get("@last"), "second-2");
  EXPECT_EQ(get("first-2"), std::to_string(StatusCode::NOT_FOUND));
  EXPECT_EQ(get("99"), std::to_string(StatusCode::NOT_FOUND));
  EXPECT_EQ(get("x"), std::to_string(StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(get(""), std::to_string(StatusCode::INVALID_ARGUMENT));

  v1::GetRunRequest request;
  request.set_run("@last");
  v1::GetRunResponse response;
  const grpc::Status none = stub_->GetRun(As("carl").get(), request, &response);
  EXPECT_EQ(none.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailOf(none).reason(), "RUN_NOT_FOUND");
}

TEST_F(RunServiceTest, ALiveRunShowsWhatOnlyTheLoopKnows) {
  loop::LiveRun live{.run = QueuedRun(1, "ana"), .gates = {}, .shapes = {}};
  live.gates = {{{core::GateKind::kCapacity, "3 of 32 cards are free", {}, {}}}};
  CommitLive(live);
  v1::GetRunRequest request;
  request.set_run("1");
  v1::GetRunResponse response;
  ASSERT_TRUE(stub_->GetRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().reason(), "CAPACITY: 3 of 32 cards are free");
}

TEST_F(RunServiceTest, ARunThatEndsBetweenStoreAndLoopIsReadAgain) {
  // Stored as queued, and no longer in the loop: what is stored by then counts.
  Commit(QueuedRun(1, "ana"));
  v1::GetRunRequest request;
  request.set_run("1");
  v1::GetRunResponse response;
  ASSERT_TRUE(stub_->GetRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_QUEUED);
  EXPECT_FALSE(response.run().reason().empty());
}

TEST_F(RunServiceTest, EnvironmentIsForTheOwnerAndAdmins) {
  core::RunWithSteps run = EndedRun(QueuedRun(1, "ana"), core::JobState::kStopped);
  run.steps[0].spec.env = {{"LR", "0.1"}};
  Commit(run);
  const auto shown = [this](const std::string& user, store::Role role) {
    v1::GetRunRequest request;
    request.set_run("1");
    v1::GetRunResponse response;
    EXPECT_TRUE(stub_->GetRun(As(user, role).get(), request, &response).ok());
    return response.run().steps(0).spec().env_size() == 1;
  };
  EXPECT_TRUE(shown("ana", store::Role::kUser));
  EXPECT_TRUE(shown("root", store::Role::kAdmin));
  EXPECT_FALSE(shown("bob", store::Role::kUser));
  EXPECT_FALSE(shown("olga", store::Role::kOperator));
}

TEST_F(RunServiceTest, ListsInPagesNewestFirst) {
  for (int64_t n = 1; n <= 5; ++n) Commit(EndedRun(QueuedRun(n, n == 3 ? "bob" : "ana"), core::JobState::kStopped));
  v1::ListRunsRequest request;
  request.set_owner("ana");
  request.set_page_size(2);
  std::vector<int64_t> seen;
  do {
    v1::ListRunsResponse response;
    ASSERT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok());
    EXPECT_LE(response.runs_size(), 2);
    for (const v1::Run& run : response.runs()) seen.push_back(run.n());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, ElementsAre(5, 4, 2, 1));
}

TEST_F(RunServiceTest, APageTokenBelongsToItsFilters) {
  for (int64_t n = 1; n <= 3; ++n) Commit(EndedRun(QueuedRun(n, "ana"), core::JobState::kStopped));
  v1::ListRunsRequest request;
  request.set_page_size(1);
  v1::ListRunsResponse response;
  ASSERT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok());
  request.set_page_token(response.next_page_token());
  request.set_page_size(2);
  EXPECT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok()) << "the size may change";
  request.set_owner("ana");
  const grpc::Status status = stub_->ListRuns(As("ana").get(), request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).field(), "page_token");
}

TEST_F(RunServiceTest, APageOfLargeRunsEndsEarlyAndGoesOn) {
  for (int64_t n = 1; n <= 6; ++n) {
    core::RunWithSteps run = EndedRun(QueuedRun(n, "ana"), core::JobState::kStopped);
    run.steps[0].spec.argv.emplace_back(1 << 20, 'x');
    Commit(run);
  }
  std::vector<int64_t> seen;
  v1::ListRunsRequest request;
  int pages = 0;
  do {
    v1::ListRunsResponse response;
    const grpc::Status status = stub_->ListRuns(As("ana").get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::Run& run : response.runs()) seen.push_back(run.n());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_GT(pages, 1);
}

TEST_F(RunServiceTest, ListFiltersByState) {
  Commit(EndedRun(QueuedRun(1, "ana"), core::JobState::kStopped));
  Commit(EndedRun(RunningRun(2, "ana"), core::JobState::kFailed));
  v1::ListRunsRequest request;
  request.add_states(v1::RUN_STATE_FAILED);
  v1::ListRunsResponse response;
  ASSERT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.runs_size(), 1);
  EXPECT_EQ(response.runs(0).n(), 2);
  request.add_states(v1::RUN_STATE_UNSPECIFIED);
  EXPECT_EQ(stub_->ListRuns(As("ana").get(), request, &response).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(RunServiceTest, SteeringHandsTheStoredRunToTheLoop) {
  const core::RunWithSteps run = RunningRun(4, "ana");
  Commit(run);
  loop_.OnCommand([&](const loop::Command& command) -> absl::StatusOr<loop::Answer> {
    return std::visit(
        [&](const auto& action) -> absl::StatusOr<loop::Answer> {
          if constexpr (requires { action.stored; }) {
            EXPECT_EQ(action.stored, run);
            return loop::Answer{.run = 4,
                                .run_id = "train-4",
                                .note = "does " + command.method,
                                .live = loop::LiveRun{.run = run, .gates = {{}}, .shapes = {{}}}};
          }
          return absl::InternalError("not expected");
        },
        command.action);
  });
  const auto steer = [&](auto request, auto response, auto method) {
    request.set_run("train-4");
    request.set_request_id("r");
    const grpc::Status status = (stub_.get()->*method)(As("ana").get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.run().id(), "train-4");
    return response.note();
  };
  EXPECT_THAT(steer(v1::StopRunRequest(), v1::StopRunResponse(), &v1::RunService::Stub::StopRun), HasSubstr("StopRun"));
  EXPECT_THAT(steer(v1::PauseRunRequest(), v1::PauseRunResponse(), &v1::RunService::Stub::PauseRun),
              HasSubstr("PauseRun"));
  EXPECT_THAT(steer(v1::ResumeRunRequest(), v1::ResumeRunResponse(), &v1::RunService::Stub::ResumeRun),
              HasSubstr("ResumeRun"));
  EXPECT_THAT(steer(v1::RetryRunRequest(), v1::RetryRunResponse(), &v1::RunService::Stub::RetryRun),
              HasSubstr("RetryRun"));
}

TEST_F(RunServiceTest, ARunThatEndedWithTheStopIsReadFromTheStore) {
  Commit(QueuedRun(4, "ana"));
  loop_.OnCommand([this](const loop::Command&) {
    Commit(EndedRun(QueuedRun(4, "ana"), core::JobState::kStopped));
    return loop::Answer{.run = 4, .run_id = "train-4", .note = "stopped", .live = std::nullopt};
  });
  v1::StopRunRequest request;
  request.set_run("4");
  request.set_request_id("r");
  v1::StopRunResponse response;
  ASSERT_TRUE(stub_->StopRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().state(), v1::RUN_STATE_STOPPED);
  EXPECT_EQ(response.note(), "stopped");
}

TEST_F(RunServiceTest, EventsOfARun) {
  Commit(QueuedRun(1, "ana"), "submitted");
  Commit(QueuedRun(2, "ana"), "submitted");
  Commit(RunningRun(1, "ana"), "observed");
  v1::ListRunEventsRequest request;
  request.set_run("1");
  v1::ListRunEventsResponse response;
  ASSERT_TRUE(stub_->ListRunEvents(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.events_size(), 2);
  EXPECT_EQ(response.events(1).event(), "observed");
  EXPECT_EQ(response.events(1).step(), 1);
  request.set_after_revision(response.events(0).revision());
  ASSERT_TRUE(stub_->ListRunEvents(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.events_size(), 1);
}

}  // namespace
}  // namespace tp::api
