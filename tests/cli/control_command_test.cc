#include <csignal>
#include <set>

#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ControlCommandTest : public CommandTest {
 protected:
  ControlCommandTest() {
    server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_RUNNING), MakeRun(41, "eval", v1::RUN_STATE_PAUSED)};
  }

  // What a wait sees, one state after the other.
  void Watch(std::initializer_list<v1::RunState> states) {
    for (const v1::RunState state : states) server_.script().watch.push_back(MakeRun(42, "train", state));
  }
};

TEST_F(ControlCommandTest, IdsGoToStdoutTalkToStderr) {
  server_.script().steer_note = "TERM now, KILL after 30s";
  for (const char* command : {"stop", "pause", "resume", "retry", "rm", "hold", "release", "cancel", "kill"}) {
    const Finished tp = Tp({command, "42"});
    EXPECT_EQ(tp.exit_code, 0) << command;
    EXPECT_EQ(tp.out, "train-42\n") << command;
    EXPECT_EQ(tp.err, "train-42: TERM now, KILL after 30s\n") << command;
  }
}

TEST_F(ControlCommandTest, EachVerbAsksForWhatItSays) {
  for (const char* command : {"stop", "pause", "resume", "retry", "hold", "release"}) Tp({command, "42"});
  EXPECT_THAT(server_.asked().steered,
              ElementsAre("StopRun 42", "PauseRun 42", "ResumeRun 42", "RetryRun 42", "HoldRun 42", "ReleaseRun 42"));
}

TEST_F(ControlCommandTest, BulkTakesWhatTheVerbCanDoSomethingWith) {
  server_.script().runs = {MakeRun(44, "a", v1::RUN_STATE_RUNNING), MakeRun(43, "b", v1::RUN_STATE_FAILED),
                           MakeRun(42, "c", v1::RUN_STATE_PAUSED)};
  const Finished stopped = Tp({"stop", "--label", "team=vision", "-y"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "a-44\nc-42\n");
  EXPECT_EQ(server_.asked().lists.at(0).labels().at("team"), "vision");
  EXPECT_EQ(server_.asked().lists.at(0).owner(), "alice");
  EXPECT_EQ(Tp({"rm", "--label", "team=vision", "-y"}).out, "b-43\n");
  EXPECT_EQ(Tp({"resume", "-A", "--state", "paused", "--yes"}).out, "c-42\n");
  EXPECT_THAT(server_.asked().steered, ElementsAre("StopRun a-44", "StopRun c-42", "RemoveRun b-43", "ResumeRun c-42"));
  const std::vector<std::string> ids = server_.asked().request_ids;
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 3U) << "the two stops are one call";
}

TEST_F(ControlCommandTest, MoreThanOneCallTakesAreSeveralCalls) {
  server_.script().runs.clear();
  for (int n = 1; n <= 1001; ++n) server_.script().runs.push_back(MakeRun(n, "sweep", v1::RUN_STATE_QUEUED));
  const Finished tp = Tp({"-q", "stop", "--label", "a=b", "-y"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_THAT(server_.asked().steered, SizeIs(1001));
  EXPECT_THAT(server_.asked().request_ids, SizeIs(2));
}

TEST_F(ControlCommandTest, BulkAsksAndDoesNothingWithoutAYes) {
  options_.terminal_columns = 100;
  for (const auto& [answer, done] :
       std::vector<std::pair<std::string, bool>>{{"n\n", false}, {"\n", false}, {"y\n", true}}) {
    const auto tp = Start({"stop", "--label", "a=b"});
    tp->AwaitErr("[y/N]");
    tp->Type(answer);
    const Finished finished = tp->Wait();
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_THAT(finished.err, HasSubstr("stop 2 runs of alice: train-42 (RUNNING), eval-41 (PAUSED)? [y/N] "));
    EXPECT_EQ(finished.out, done ? "train-42\neval-41\n" : "");
  }
}

TEST_F(ControlCommandTest, BulkWithoutATerminalNeedsAYes) {
  const Finished tp = Tp({"stop", "--state", "running,paused"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_EQ(tp.err, "tp: stop 2 runs of alice: there is no terminal to ask at; -y does it without a question\n");
  EXPECT_THAT(server_.asked().steered, SizeIs(0));
}

TEST_F(ControlCommandTest, BulkOrNamesAndNotNothing) {
  EXPECT_EQ(Tp({"stop", "42", "--label", "a=b"}).exit_code, 2);
  const Finished tp = Tp({"rm"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr("which runs? name them (tp rm 42)"));
  const Finished none = Tp({"retry", "--label", "a=b", "-y"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.err, "no run matches\n");
}

TEST_F(ControlCommandTest, QuietSaysNothing) {
  const Finished tp = Tp({"-q", "stop", "42"});
  EXPECT_EQ(tp.out, "train-42\n");
  EXPECT_EQ(tp.err, "");
}

TEST_F(ControlCommandTest, JsonHasRunAndNote) {
  server_.script().steer_note = "note";
  const auto document = nlohmann::json::parse(Tp({"stop", "42", "-o", "json"}).out);
  EXPECT_EQ(document["runs"][0]["run"]["id"], "train-42");
  EXPECT_EQ(document["runs"][0]["note"], "note");
}

TEST_F(ControlCommandTest, EveryRunIsTried) {
  const Finished tp = Tp({"stop", "42", "7", "41"});
  EXPECT_EQ(tp.exit_code, 4);
  EXPECT_EQ(tp.out, "train-42\neval-41\n");
  EXPECT_THAT(tp.err, HasSubstr("tp: there is no run 7\n"));
}

TEST_F(ControlCommandTest, ConflictsAndDenialsHaveTheirCodes) {
  server_.script().failures["RetryRun"] = {{grpc::StatusCode::FAILED_PRECONDITION, "it has SUCCEEDED"},
                                           {grpc::StatusCode::PERMISSION_DENIED, "not yours"},
                                           {grpc::StatusCode::ALREADY_EXISTS, "other body"},
                                           {grpc::StatusCode::INVALID_ARGUMENT, "wrong"}};
  EXPECT_EQ(Tp({"retry", "42"}).exit_code, 9);
  EXPECT_EQ(Tp({"retry", "42"}).exit_code, 5);
  EXPECT_EQ(Tp({"retry", "42"}).exit_code, 9);
  EXPECT_EQ(Tp({"retry", "42"}).exit_code, 2);
}

TEST_F(ControlCommandTest, AnUnavailableServerIsAskedAgainWithTheSameId) {
  server_.script().failures["SteerRuns"] = {{grpc::StatusCode::UNAVAILABLE, "restarting"},
                                            {grpc::StatusCode::UNAVAILABLE, "restarting"}};
  EXPECT_EQ(Tp({"stop", "42"}).exit_code, 0);
  const std::vector<std::string> ids = server_.asked().request_ids;
  ASSERT_THAT(ids, SizeIs(3));
  EXPECT_THAT(ids[0], SizeIs(32));
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[1], ids[2]);
}

TEST_F(ControlCommandTest, EachCallHasItsOwnId) {
  Tp({"stop", "42"});
  Tp({"stop", "42"});
  const std::vector<std::string> ids = server_.asked().request_ids;
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_NE(ids[0], ids[1]);
}

TEST_F(ControlCommandTest, WaitTellsTheEndByItsCode) {
  for (const auto& [state, code] : std::vector<std::pair<v1::RunState, int>>{{v1::RUN_STATE_SUCCEEDED, 0},
                                                                             {v1::RUN_STATE_FAILED, 1},
                                                                             {v1::RUN_STATE_STOPPED, 6},
                                                                             {v1::RUN_STATE_PARTIAL, 8}}) {
    server_.script().watch.clear();
    Watch({v1::RUN_STATE_QUEUED, v1::RUN_STATE_RUNNING, state});
    const Finished tp = Tp({"wait", "42"});
    EXPECT_EQ(tp.exit_code, code);
    EXPECT_EQ(tp.out, "");
    EXPECT_THAT(tp.err, HasSubstr("train-42: QUEUED\ntrain-42: RUNNING\ntrain-42: "));
  }
}

TEST_F(ControlCommandTest, WaitGoesOnWhilePausedAndSaysSo) {
  Watch({v1::RUN_STATE_PAUSED, v1::RUN_STATE_SUCCEEDED});
  const Finished tp = Tp({"wait", "42"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_THAT(tp.err, HasSubstr("train-42: PAUSED; still waiting\n"));
}

TEST_F(ControlCommandTest, WaitUntilAState) {
  Watch({v1::RUN_STATE_QUEUED, v1::RUN_STATE_RUNNING});
  server_.script().watch_hangs = true;
  EXPECT_EQ(Tp({"wait", "42", "--until", "running"}).exit_code, 0);
}

TEST_F(ControlCommandTest, WaitUntilAStateThatWillNotCome) {
  Watch({v1::RUN_STATE_SUCCEEDED});
  EXPECT_EQ(Tp({"wait", "42", "--until", "FAILED"}).exit_code, 9);
  EXPECT_EQ(Tp({"wait", "42", "--until", "DONE"}).exit_code, 2);
}

TEST_F(ControlCommandTest, WaitTimesOut) {
  Watch({v1::RUN_STATE_RUNNING});
  server_.script().watch_hangs = true;
  const Finished tp = Tp({"wait", "42", "--timeout", "1s"});
  EXPECT_EQ(tp.exit_code, 7);
  EXPECT_THAT(tp.err, HasSubstr("gave up waiting for "));
  EXPECT_THAT(tp.err, HasSubstr("; it goes on\n"));
}

TEST_F(ControlCommandTest, CtrlCLeavesTheRunAlone) {
  Watch({v1::RUN_STATE_RUNNING});
  server_.script().watch_hangs = true;
  const auto tp = Start({"wait", "42"});
  tp->AwaitErr("RUNNING");
  tp->Signal(SIGINT);
  const Finished finished = tp->Wait();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.err, HasSubstr("train-42 goes on; wait again with: tp wait train-42\n"));
  EXPECT_THAT(server_.asked().request_ids, SizeIs(0));
}

TEST_F(ControlCommandTest, WaitOutlivesARestartOfTheServer) {
  Watch({v1::RUN_STATE_RUNNING});
  server_.script().failures["WatchRun"] = {{grpc::StatusCode::UNAVAILABLE, "going away"}};
  server_.script().watch_hangs = true;
  const auto tp = Start({"wait", "42", "--until", "running"});
  EXPECT_EQ(tp->Wait().exit_code, 0);
  server_.script().watch.clear();
  Watch({v1::RUN_STATE_QUEUED});
  server_.script().failures["WatchRun"] = {{grpc::StatusCode::UNAVAILABLE, "going away"}};
  const auto waiting = Start({"wait", "42"});
  server_.AwaitHanging();
  waiting->Signal(SIGINT);
  const Finished finished = waiting->Wait();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.err, HasSubstr("the server is away; waiting for it\n"));
}

TEST_F(ControlCommandTest, AWatchThatEndsEarlyIsOpenedAgain) {
  Watch({v1::RUN_STATE_RUNNING});
  server_.script().later_watch = {MakeRun(42, "train", v1::RUN_STATE_SUCCEEDED)};
  EXPECT_EQ(Tp({"wait", "42"}).exit_code, 0);
  EXPECT_EQ(server_.asked().watches, 2);
}

TEST_F(ControlCommandTest, WaitForSeveralTellsTheFirstThatDidNotSucceed) {
  Watch({v1::RUN_STATE_FAILED});
  const Finished tp = Tp({"wait", "42", "41", "-o", "name"});
  EXPECT_EQ(tp.exit_code, 1);
  EXPECT_EQ(tp.out, "train-42\ntrain-42\n") << "the fake server shows the same run for both";
}

}  // namespace
}  // namespace tp::cli
