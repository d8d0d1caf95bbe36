#include <csignal>

#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SubmitCommandTest : public CommandTest {
 protected:
  SubmitCommandTest() {
    server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_QUEUED)};
    project_.Write("train.py", "print('hello')\n");
  }
};

TEST_F(SubmitCommandTest, PrintsTheIdAloneOnStdout) {
  server_.script().notes = {"A was replaced by the profile"};
  const Finished tp = Tp({"submit", "--profile", "h200:16", "--", "python3", "train.py"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(tp.out, "train-42\n");
  EXPECT_EQ(tp.err, "h200:16 = 2 nodes x 8\nA was replaced by the profile\n");
}

TEST_F(SubmitCommandTest, SendsWhatWasAsked) {
  Tp({"submit",    "--profile", "h200:16", "--env", "A=1",          "--env", "B=2", "--label", "team=x",
      "--project", "p",         "--image", "img",   "--time-limit", "2h",    "--",  "python3", "train.py",
      "--lr",      "[1,2]",     "--",      "x"});
  const v1::SubmitRunRequest request = server_.asked().submits.at(0);
  EXPECT_EQ(request.name(), "train");
  EXPECT_EQ(request.project(), "p");
  EXPECT_EQ(request.labels().at("team"), "x");
  EXPECT_FALSE(request.dry_run());
  EXPECT_THAT(request.request_id(), SizeIs(32));
  const v1::StepSpec& step = request.steps(0);
  EXPECT_THAT(step.argv(), ElementsAre("python3", "train.py", "--lr", "[1,2]", "--", "x"));
  EXPECT_THAT(step.profiles(), ElementsAre("h200:16"));
  EXPECT_EQ(step.explicit_env().at("B"), "2");
  EXPECT_EQ(step.image(), "img");
  EXPECT_EQ(step.time_limit().seconds(), 7200);
}

TEST_F(SubmitCommandTest, SendsWhoIsToBeTold) {
  project_.Write("tp.yaml", "notify: [{to: bob@example.org, on: [failed]}]\n");
  const Finished tp = Tp({"submit", "--", "python3", "train.py"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  const v1::SubmitRunRequest request = server_.asked().submits.at(0);
  ASSERT_EQ(request.notify_size(), 1);
  EXPECT_EQ(request.notify(0).to(), "bob@example.org");
  EXPECT_THAT(request.notify(0).on(), ElementsAre(v1::NOTICE_EVENT_FAILED));
}

constexpr char kPipeline[] = R"(env: {A: project, B: project}
image: base
then: [export]
steps:
  export: {command: python3 export.py, env: {B: step}, image: exporter, time_limit: 10m}
  clean: {command: [rm, -r, scratch], profile: cpu, after: {step: main, when: always}}
  report: {command: report, after: {when: failure}}
)";

TEST_F(SubmitCommandTest, ThenAddsStepsOfTheProjectAndRecipes) {
  project_.Write("tp.yaml", kPipeline);
  const Finished tp = Tp({"submit", "--env", "C=flag", "--time-limit", "2h", "--then", "export", "--then", "eval",
                          "--then", "clean", "--then", "report", "--", "python3", "train.py"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  const v1::SubmitRunRequest request = server_.asked().submits.at(0);
  ASSERT_EQ(request.steps_size(), 5);
  EXPECT_EQ(request.steps(0).name(), "main");
  EXPECT_EQ(request.steps(0).image(), "base");
  const v1::StepSpec& exporting = request.steps(1);
  EXPECT_EQ(exporting.name(), "export");
  EXPECT_THAT(exporting.argv(), ElementsAre("sh", "-c", "python3 export.py"));
  EXPECT_EQ(exporting.env().at("A"), "project");
  EXPECT_EQ(exporting.env().at("B"), "step");
  EXPECT_EQ(exporting.explicit_env().at("C"), "flag");
  EXPECT_EQ(exporting.image(), "exporter");
  EXPECT_EQ(exporting.time_limit().seconds(), 600);
  EXPECT_FALSE(exporting.has_after()) << "the step before, on success, is the server's default";
  EXPECT_EQ(exporting.recipe(), "");
  const v1::StepSpec& eval = request.steps(2);
  EXPECT_EQ(eval.recipe(), "eval") << "what tp.yaml does not know may be a recipe of the deployment";
  EXPECT_EQ(eval.argv_size(), 0);
  EXPECT_EQ(eval.image(), "base");
  EXPECT_EQ(request.steps(3).after().step(), "main");
  EXPECT_EQ(request.steps(3).after().when(), v1::AFTER_WHEN_ALWAYS);
  EXPECT_THAT(request.steps(3).profiles(), ElementsAre("cpu"));
  EXPECT_EQ(request.steps(4).after().step(), "clean") << "the step before";
  EXPECT_EQ(request.steps(4).after().when(), v1::AFTER_WHEN_FAILURE);
}

TEST_F(SubmitCommandTest, TheProjectMayListTheStepsThatFollow) {
  project_.Write("tp.yaml", kPipeline);
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  EXPECT_EQ(Tp({"submit", "--no-then", "--", "true"}).exit_code, 0);
  EXPECT_EQ(Tp({"submit", "--then", "clean", "--", "true"}).exit_code, 0);
  ASSERT_EQ(server_.asked().submits.at(0).steps_size(), 2);
  EXPECT_EQ(server_.asked().submits.at(0).steps(1).name(), "export");
  EXPECT_EQ(server_.asked().submits.at(1).steps_size(), 1);
  ASSERT_EQ(server_.asked().submits.at(2).steps_size(), 2);
  EXPECT_EQ(server_.asked().submits.at(2).steps(1).name(), "clean");
}

TEST_F(SubmitCommandTest, AStepNeedsTheOneItComesAfter) {
  project_.Write("tp.yaml", "steps:\n  a: {command: a}\n  b: {command: b, after: {step: a}}\n");
  const Finished tp = Tp({"submit", "--then", "b", "--", "true"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr("step b comes after a in tp.yaml: write --then a before it"));
  EXPECT_THAT(server_.asked().submits, SizeIs(0));
}

TEST_F(SubmitCommandTest, UploadsTheDirectoryOnce) {
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  EXPECT_EQ(server_.asked().commits, 1);
  EXPECT_EQ(server_.asked().blobs, 1);
  const auto& snapshots = server_.script().snapshots;
  ASSERT_THAT(snapshots, SizeIs(1));
  EXPECT_EQ(server_.asked().submits.at(1).snapshot_id(), snapshots.begin()->first);
  EXPECT_EQ(server_.script().blobs.at(snapshots.begin()->second.at(0).sha256), "print('hello')\n");
  project_.Write("train.py", "print('other')\n");
  project_.Write("copy.py", "print('hello')\n");
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  EXPECT_EQ(server_.asked().commits, 2);
  EXPECT_EQ(server_.asked().blobs, 2) << "content that is known is not sent under another name";
}

TEST_F(SubmitCommandTest, UploadsAnotherDirectory) {
  project_.Write("sub/only.txt", "here");
  EXPECT_EQ(Tp({"submit", "--dir", "sub", "--", "true"}).exit_code, 0);
  const auto& entries = server_.script().snapshots.begin()->second;
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].path, "only.txt");
}

TEST_F(SubmitCommandTest, ALargeDirectoryArrivesWhole) {
  project_.Write("data", std::string(3'000'000, 'd'));
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  EXPECT_EQ(server_.asked().blob_bytes, 3'000'000 + 15);
}

TEST_F(SubmitCommandTest, AnInterruptedUploadGoesOn) {
  project_.Write("data", std::string(3'000'000, 'd'));
  server_.script().break_after_blob_bytes = 1'000'000;
  const Finished tp = Tp({"submit", "--", "true"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(server_.asked().blob_bytes, 3'000'000 + 15) << "no byte twice";
}

TEST_F(SubmitCommandTest, TooMuchIsRefusedBeforeItIsRead) {
  server_.script().max_snapshot_bytes = 1000;
  project_.Write("data", std::string(3000, 'd'));
  ASSERT_EQ(::chmod((project_ / "train.py").c_str(), 0), 0);
  const Finished tp = Tp({"submit", "--", "true"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr("the largest files: 'data' (2.9 KiB), 'train.py' (15 B)"));
  EXPECT_EQ(server_.asked().blobs, 0);
}

TEST_F(SubmitCommandTest, ListFilesTellsWhatGoesAndWhatStays) {
  project_.Write(".tpignore", "*.ckpt\n# comment\nsecret/\n");
  project_.Write("a.ckpt", "x");
  project_.Write("secret/key", "x");
  project_.Write(".git/config", "x");
  project_.Write("bin/run", "#!/bin/sh\n", 0755);
  project_.Link("link", "bin/run");
  const Finished tp = Tp({"submit", "--list-files"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(tp.out,
            "SIZE  PATH\n"
            "25 B  .tpignore\n"
            "   -  bin/\n"
            "10 B  bin/run\n"
            "   -  link -> bin/run\n"
            "15 B  train.py\n"
            "3 file(s), 50 B\n"
            "\n"
            "LEFT OUT  BY\n"
            ".git/     default: .git\n"
            "a.ckpt    .tpignore:1: *.ckpt\n"
            "secret/   .tpignore:3: secret/\n");
  const auto document = nlohmann::json::parse(Tp({"submit", "--list-files", "-o", "json"}).out);
  EXPECT_EQ(document["files"], 3);
  EXPECT_EQ(document["bytes"], 50);
  EXPECT_EQ(document["entries"][2]["executable"], true);
  EXPECT_EQ(document["left_out"][1]["line"], 1);
  EXPECT_TRUE(document["left_out"][0]["file"].is_null());
  EXPECT_THAT(server_.asked().plans, SizeIs(0));
}

TEST_F(SubmitCommandTest, NothingIsSubmittedTwice) {
  server_.script().failures["SubmitRun"] = {{grpc::StatusCode::UNAVAILABLE, "restarting"}};
  server_.script().failures["CommitManifest"] = {{grpc::StatusCode::UNAVAILABLE, "restarting"}};
  EXPECT_EQ(Tp({"submit", "--", "true"}).exit_code, 0);
  const Asked asked = server_.asked();
  ASSERT_THAT(asked.submits, SizeIs(2));
  EXPECT_EQ(asked.submits[0].request_id(), asked.submits[1].request_id());
  ASSERT_THAT(asked.request_ids, SizeIs(4));
  EXPECT_EQ(asked.request_ids[0], asked.request_ids[1]) << "of the commit";
  EXPECT_NE(asked.request_ids[1], asked.request_ids[2]);
}

TEST_F(SubmitCommandTest, WhatTheServerRefusesIsNotUploaded) {
  server_.script().failures["SubmitRun, dry run"] = {
      {grpc::StatusCode::INVALID_ARGUMENT, "--profile h200:12: 8-card nodes take 8 or 16"}};
  const Finished tp = Tp({"submit", "--profile", "h200:12", "--", "true"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_EQ(tp.out, "");
  EXPECT_EQ(tp.err, "tp: --profile h200:12: 8-card nodes take 8 or 16\n");
  EXPECT_EQ(server_.asked().commits, 0);
}

TEST_F(SubmitCommandTest, DryRunCreatesNothing) {
  server_.script().notes = {"would wait for CAPACITY"};
  const Finished tp = Tp({"submit", "--dry-run", "--env", "HF_TOKEN=hunter2", "--", "python3", "train.py"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(server_.asked().commits, 0);
  EXPECT_THAT(server_.asked().submits, SizeIs(0));
  EXPECT_THAT(server_.asked().plans, SizeIs(1));
  EXPECT_EQ(tp.out,
            "command     python3 train.py\n"
            "profile     h200:16 = 2 nodes x 8\n"
            "backend     local\n"
            "environment HF_TOKEN=***\n"
            "note: would wait for CAPACITY\n");
  EXPECT_EQ(tp.err, "nothing was created; the directory has 1 file(s), 15 B\n");
}

TEST_F(SubmitCommandTest, JsonHasRunAndNotes) {
  server_.script().notes = {"note"};
  const auto document = nlohmann::json::parse(Tp({"submit", "-o", "json", "--env", "A_KEY=hunter2", "--", "true"}).out);
  EXPECT_EQ(document["run"]["id"], "train-42");
  EXPECT_EQ(document["notes"][0], "note");
  EXPECT_EQ(document["run"]["steps"][0]["spec"]["explicit_env"]["A_KEY"], "***");
}

TEST_F(SubmitCommandTest, WaitExitsAsTheRunDoes) {
  server_.script().watch = {MakeRun(42, "train", v1::RUN_STATE_FAILED)};
  const Finished tp = Tp({"submit", "--wait", "--", "true"});
  EXPECT_EQ(tp.exit_code, 1);
  EXPECT_EQ(tp.out, "train-42\n");
}

TEST_F(SubmitCommandTest, FollowPrintsTheLogThenExitsAsTheRunDoes) {
  v1::ReadLogResponse& chunk = server_.script().log.emplace_back();
  chunk.set_rank("0-0");
  chunk.set_attempt(1);
  chunk.set_data("hello\n");
  server_.script().watch = {MakeRun(42, "train", v1::RUN_STATE_STOPPED)};
  const Finished tp = Tp({"submit", "-f", "--", "true"});
  EXPECT_EQ(tp.exit_code, 6);
  EXPECT_EQ(tp.out, "train-42\nhello\n");
}

TEST_F(SubmitCommandTest, CtrlCOnAFollowLeavesTheRunAlone) {
  server_.script().log_hangs = true;
  const auto tp = Start({"submit", "-f", "--", "true"});
  server_.AwaitHanging();
  tp->Signal(SIGINT);
  const Finished finished = tp->Wait();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_EQ(finished.out, "train-42\n");
  EXPECT_THAT(finished.err, HasSubstr("train-42 goes on; follow it again with: tp logs -f train-42\n"));
}

TEST_F(SubmitCommandTest, RefusesWhatCannotBePacked) {
  ASSERT_EQ(::mkfifo((project_ / "pipe").c_str(), 0600), 0);
  const Finished tp = Tp({"submit", "--", "true"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr("'pipe': a device, socket or pipe"));
  EXPECT_THAT(server_.asked().submits, SizeIs(0));
}

TEST_F(SubmitCommandTest, NeedsACommandBehindDashes) {
  EXPECT_EQ(Tp({"submit"}).exit_code, 2);
  EXPECT_EQ(Tp({"submit", "--"}).exit_code, 2);
  const Finished tp = Tp({"submit", "python3", "train.py"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr("the job's command goes behind --"));
}

}  // namespace
}  // namespace tp::cli
