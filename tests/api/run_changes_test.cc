// UpdateRun, CloneRun, RemoveRun and what a tombstone still answers, over the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/run_changes.h"
#include "server_fixture.h"
#include "tp/v1/log.grpc.pb.h"
#include "tp/v1/run.grpc.pb.h"
#include "tp/v1/usage.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class RunChangesTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::RunService::NewStub(channel());
    loop_.OnCommand([](const loop::Command&) {
      return loop::Answer{
          .run = 9, .run_id = "train-9", .note = "done", .live = loop::LiveRun{QueuedRun(9, "ana"), {{}}, {{}}}};
    });
  }

  core::RunWithSteps Ended(int64_t n, const std::string& owner) {
    core::RunWithSteps run = EndedRun(QueuedRun(n, owner), core::JobState::kStopped);
    run.run.labels = {{"team", "vision"}};
    run.steps[0].spec.env = {{"SECRET_TOKEN", "hunter2"}};
    return run;
  }

  template <typename Action>
  Action Asked() {
    const std::vector<loop::Command> commands = loop_.commands();
    EXPECT_EQ(commands.size(), 1U);
    return commands.empty() ? Action() : std::get<Action>(commands.back().action);
  }

  grpc::Status Clone(const v1::CloneRunRequest& request, const std::string& user = "ana",
                     store::Role role = store::Role::kUser) {
    v1::CloneRunResponse response;
    return stub_->CloneRun(As(user, role).get(), request, &response);
  }
  grpc::Status Update(const v1::UpdateRunRequest& request) {
    v1::UpdateRunResponse response;
    return stub_->UpdateRun(As("ana").get(), request, &response);
  }

  static v1::CloneRunRequest CloneRequest() {
    v1::CloneRunRequest request;
    request.set_request_id("r-1");
    request.set_run("1");
    return request;
  }
  static v1::UpdateRunRequest UpdateRequest(std::initializer_list<const char*> fields) {
    v1::UpdateRunRequest request;
    request.set_request_id("r-1");
    request.set_run("1");
    for (const char* field : fields) request.mutable_update_mask()->add_paths(field);
    return request;
  }

  std::unique_ptr<v1::RunService::Stub> stub_;
};

TEST_F(RunChangesTest, ACloneIsASubmissionOfTheSame) {
  Commit(Ended(1, "ana"));
  v1::CloneRunResponse response;
  const grpc::Status status = stub_->CloneRun(As("ana").get(), CloneRequest(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.run().id(), "train-9");
  EXPECT_THAT(response.notes(), ElementsAre("done"));
  const auto submit = Asked<loop::SubmitRun>();
  EXPECT_EQ(submit.clone_of, "train-1");
  EXPECT_EQ(submit.name, "train");
  EXPECT_EQ(submit.labels.at("team"), "vision");
  EXPECT_THAT(submit.steps[0].argv, ElementsAre("python3", "train.py"));
  EXPECT_EQ(submit.steps[0].env.at("SECRET_TOKEN"), "hunter2") << "not the mask that people are shown";
}

TEST_F(RunChangesTest, ACloneDiffersInWhatIsSaid) {
  Commit(Ended(1, "ana"));
  v1::CloneRunRequest request = CloneRequest();
  request.set_name("other");
  request.add_argv("true");
  request.add_profiles("h200:8");
  (*request.mutable_explicit_env())["LR"] = "0.1";
  (*request.mutable_labels())["run"] = "b";
  request.set_priority(20);
  ASSERT_TRUE(Clone(request).ok());
  const auto submit = Asked<loop::SubmitRun>();
  EXPECT_EQ(submit.name, "other");
  EXPECT_EQ(submit.priority, 20);
  EXPECT_THAT(submit.steps[0].argv, ElementsAre("true"));
  EXPECT_THAT(submit.steps[0].profiles, ElementsAre("h200:8"));
  EXPECT_EQ(submit.steps[0].explicit_env.at("LR"), "0.1");
  EXPECT_EQ(submit.labels.size(), 2U);
}

TEST_F(RunChangesTest, ACloneOfSomebodyElsesIsForAdmins) {
  Commit(Ended(1, "ana"));
  EXPECT_EQ(Clone(CloneRequest(), "bob").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Clone(CloneRequest(), "olga", store::Role::kOperator).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Clone(CloneRequest(), "root", store::Role::kAdmin).ok());
}

TEST_F(RunChangesTest, ACloneNeedsTheSnapshot) {
  core::RunWithSteps run = Ended(1, "ana");
  run.run.snapshot_id = std::string(64, 'a');
  Commit(run);
  const grpc::Status unknown = Clone(CloneRequest());
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailOf(unknown).reason(), "SNAPSHOT_NOT_FOUND");
  run.run.snapshot_available = false;
  Commit(run);
  const grpc::Status gone = Clone(CloneRequest());
  EXPECT_EQ(gone.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(gone).reason(), "SNAPSHOT_GONE");
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(RunChangesTest, OverridesOfAPipelineAreRefused) {
  core::RunWithSteps run = Ended(1, "ana");
  run.steps.push_back(run.steps[0]);
  run.steps[1].ref.step = 1;
  v1::CloneRunRequest request = CloneRequest();
  EXPECT_TRUE(ParseClone(request, run).ok());
  request.add_profiles("h200:8");
  EXPECT_FALSE(ParseClone(request, run).ok());
}

TEST_F(RunChangesTest, AnUpdateIsWhatItsMaskNames) {
  CommitLive({.run = QueuedRun(1, "ana"), .gates = {{}}, .shapes = {{}}});
  v1::UpdateRunRequest request = UpdateRequest({"priority", "profiles", "hold", "time_limit", "labels", "name"});
  request.set_priority(7);
  request.add_profiles("h200:8");
  request.set_hold(true);
  (*request.mutable_labels())["a"] = "b";
  request.set_name("other");
  request.set_expected_version("v");
  ASSERT_TRUE(Update(request).ok());
  const auto update = Asked<loop::UpdateRun>();
  EXPECT_EQ(update.stored.run.n, 1);
  EXPECT_EQ(update.expected_version, "v");
  EXPECT_EQ(update.revision.priority, 7);
  EXPECT_EQ(update.revision.hold, true);
  EXPECT_EQ(update.revision.name, "other");
  EXPECT_THAT(*update.revision.profiles, ElementsAre("h200:8"));
  ASSERT_TRUE(update.revision.time_limit.has_value());
  EXPECT_FALSE(update.revision.time_limit->has_value());
}

TEST_F(RunChangesTest, WhatTheMaskLeavesOutStays) {
  CommitLive({.run = QueuedRun(1, "ana"), .gates = {{}}, .shapes = {{}}});
  v1::UpdateRunRequest request = UpdateRequest({"hold"});
  request.set_priority(7);
  ASSERT_TRUE(Update(request).ok());
  const auto update = Asked<loop::UpdateRun>();
  EXPECT_EQ(update.revision.hold, false);
  EXPECT_FALSE(update.revision.priority);
}

TEST_F(RunChangesTest, AMaskNamesFieldsThatCanBeUpdated) {
  CommitLive({.run = QueuedRun(1, "ana"), .gates = {{}}, .shapes = {{}}});
  for (const auto& fields : {std::initializer_list<const char*>{}, {"owner"}, {"name"}}) {
    const grpc::Status status = Update(UpdateRequest(fields));
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
  }
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(RunChangesTest, RemoveGoesThroughTheLoop) {
  Commit(Ended(1, "ana"));
  v1::RemoveRunRequest request;
  request.set_run("1");
  v1::RemoveRunResponse response;
  EXPECT_EQ(stub_->RemoveRun(As("ana").get(), request, &response).error_code(), StatusCode::INVALID_ARGUMENT)
      << "without a request id";
  request.set_request_id("r-1");
  ASSERT_TRUE(stub_->RemoveRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.note(), "done");
  EXPECT_EQ(Asked<loop::RemoveRun>().stored.run.n, 1);
}

class TombstoneTest : public RunChangesTest {
 protected:
  void SetUp() override {
    RunChangesTest::SetUp();
    core::RunWithSteps run = Ended(1, "ana");
    run.run.removed_at = absl::FromUnixSeconds(1'800'000'000);
    Commit(run);
  }
};

TEST_F(TombstoneTest, IsHiddenFromListsUnlessAskedFor) {
  v1::ListRunsRequest request;
  v1::ListRunsResponse response;
  ASSERT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.runs_size(), 0);
  request.set_show_removed(true);
  ASSERT_TRUE(stub_->ListRuns(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.runs_size(), 1);
  EXPECT_EQ(response.runs(0).removed_at().seconds(), 1'800'000'000);
}

TEST_F(TombstoneTest, IsShownAndItsFilesAreNot) {
  v1::GetRunRequest get;
  get.set_run("train-1");
  v1::GetRunResponse run;
  ASSERT_TRUE(stub_->GetRun(As("ana").get(), get, &run).ok());
  EXPECT_TRUE(run.run().has_removed_at());
  v1::ListResultsRequest results;
  results.set_run("1");
  v1::ListResultsResponse files;
  const grpc::Status status = stub_->ListResults(As("ana").get(), results, &files);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(status).reason(), "RUN_REMOVED");
  EXPECT_THAT(status.error_message(), HasSubstr("train-1 was removed on 2027-01-15 08:00 UTC"));
  v1::ReadLogRequest log;
  log.set_run("1");
  const auto context = As("ana");
  const auto reader = v1::LogService::NewStub(channel())->ReadLog(context.get(), log);
  v1::ReadLogResponse chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::FAILED_PRECONDITION);
}

TEST_F(RunChangesTest, MistypedRunsGetASuggestion) {
  Commit(Ended(1, "ana"));
  const auto message = [this](const std::string& selector, const std::string& user = "ana") {
    v1::GetRunRequest request;
    request.set_run(selector);
    v1::GetRunResponse response;
    return stub_->GetRun(As(user).get(), request, &response).error_message();
  };
  EXPECT_THAT(message("train"), HasSubstr("did you mean train-1?"));
  EXPECT_THAT(message("trian-11"), HasSubstr("did you mean train-1?"));
  EXPECT_THAT(message("elsewhere-99"), HasSubstr("tp ls lists those there are"));
  EXPECT_THAT(message("train", "bob"), HasSubstr("names no run")) << "only of one's own";
}

TEST_F(RunChangesTest, AnEndedRunTellsItsBackend) {
  core::RunWithSteps run = Ended(1, "ana");
  core::PastAttempt past;
  past.number = 1;
  past.backend = "slurm";
  past.nodes = {"n1"};
  run.steps[0].past = {past};
  Commit(run);
  v1::GetRunRequest request;
  request.set_run("1");
  v1::GetRunResponse response;
  ASSERT_TRUE(stub_->GetRun(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.run().steps(0).backend(), "slurm");
  EXPECT_EQ(response.run().steps(0).past_attempts(0).backend(), "slurm");
}

}  // namespace
}  // namespace tp::api
