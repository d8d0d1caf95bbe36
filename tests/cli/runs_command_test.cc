#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "cli/render/time.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

v1::Run WaitingRun() {
  v1::Run run = MakeRun(43, "train", v1::RUN_STATE_QUEUED, absl::Minutes(5));
  run.set_reason("CAPACITY: 16 of 16 cards are in use");
  v1::Step& step = *run.mutable_steps(0);
  step.set_reason(run.reason());
  v1::GateVerdict& capacity = *step.add_gates();
  capacity.set_gate(v1::GATE_CAPACITY);
  capacity.set_sentence("16 of 16 cards of h200 are in use; eval-40 frees them");
  v1::GateVerdict& window = *step.add_gates();
  window.set_gate(v1::GATE_WINDOW);
  window.set_sentence("h200 opens at 20:00");
  *window.mutable_opens_at() = ToProto(absl::Now() + absl::Minutes(200) + absl::Seconds(30));
  *window.mutable_since() = ToProto(absl::Now() - absl::Hours(1));
  return run;
}

v1::Run FinishedRun() {
  v1::Run run = MakeRun(40, "eval", v1::RUN_STATE_FAILED);
  run.set_gpu_ms(12'345);
  run.set_retry_count(1);
  run.set_reason("user_exit: rank 0-1 ended with exit code 3");
  (*run.mutable_labels())["team"] = "vision";
  v1::Step& step = *run.mutable_steps(0);
  (*step.mutable_spec()->mutable_explicit_env())["LR"] = "0.1";
  (*step.mutable_spec()->mutable_explicit_env())["HF_TOKEN"] = "hunter2";
  step.mutable_failure()->set_kind("user_exit");
  step.mutable_failure()->set_sentence("rank 0-1 ended with exit code 3");
  for (int number = 1; number <= 2; ++number) {
    v1::Attempt& attempt = *step.add_past_attempts();
    attempt.set_number(number);
    *attempt.mutable_created_at() = ToProto(absl::Now() - absl::Hours(3 - number));
    *attempt.mutable_ended_at() = ToProto(absl::Now() - absl::Hours(3 - number) + absl::Minutes(4));
    attempt.set_outcome(v1::JOB_STATE_FAILED);
    attempt.set_exit("exit 3 of rank 0-1");
    attempt.add_nodes("n1");
    attempt.add_nodes("n2");
    attempt.set_cards(16);
    attempt.set_metered_ms(1000);
  }
  return run;
}

class RunsCommandTest : public CommandTest {
 protected:
  RunsCommandTest() { server_.script().runs = {WaitingRun(), FinishedRun()}; }
};

TEST_F(RunsCommandTest, LsShowsATable) {
  const Finished tp = Tp({"ls"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.err, "");
  EXPECT_EQ(tp.out,
            "ID        STATE   REASON                                      PROFILE  BACKEND  AGE  GPU-TIME  RETRY\n"
            "train-43  QUEUED  CAPACITY: 16 of 16 cards are in use         h200:16  local     5m      0.0s      0\n"
            "eval-40   FAILED  user_exit: rank 0-1 ended with exit code 3  h200:16  local     3h     12.3s      1\n");
}

TEST_F(RunsCommandTest, LsWideShowsMore) {
  const Finished tp = Tp({"ls", "-o", "wide"});
  EXPECT_THAT(tp.out, HasSubstr("RETRY  USER   PROJECT  PRIORITY  NODES  LABELS\n"));
  EXPECT_THAT(tp.out, HasSubstr("alice  default        50  n1,n2  team=vision\n"));
}

TEST_F(RunsCommandTest, LsAsksForOnesOwnRuns) {
  Tp({"ls", "--state", "running,queued", "--label", "team=vision", "--project", "p"});
  const v1::ListRunsRequest request = server_.asked().lists.at(0);
  EXPECT_EQ(request.owner(), "alice");
  EXPECT_EQ(request.project(), "p");
  EXPECT_EQ(request.states_size(), 2);
  EXPECT_EQ(request.labels().at("team"), "vision");
  EXPECT_FALSE(request.has_active_after());
}

TEST_F(RunsCommandTest, LsOfEveryone) {
  Tp({"ls", "-A"});
  EXPECT_EQ(server_.asked().lists.at(0).owner(), "");
}

TEST_F(RunsCommandTest, LsLimitsAndSaysSo) {
  const Finished tp = Tp({"ls", "-n", "1", "-o", "name"});
  EXPECT_EQ(tp.out, "train-43\n");
  EXPECT_EQ(tp.err, "older runs are left out; -n 2 shows more, -n 0 all\n");
  EXPECT_EQ(Tp({"ls", "-n", "0", "-o", "name"}).out, "train-43\neval-40\n");
}

TEST_F(RunsCommandTest, LsWalksThePages) {
  server_.script().runs.clear();
  for (int n = 450; n > 0; --n) server_.script().runs.push_back(MakeRun(n, "x", v1::RUN_STATE_SUCCEEDED));
  const Finished tp = Tp({"ls", "-n", "0", "-o", "name"});
  EXPECT_EQ(std::count(tp.out.begin(), tp.out.end(), '\n'), 450);
  EXPECT_EQ(server_.asked().lists.size(), 3U);
}

TEST_F(RunsCommandTest, LsJsonIsStable) {
  const json document = json::parse(Tp({"ls", "-o", "json"}).out);
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["more"], false);
  const json& run = document["runs"][0];
  EXPECT_EQ(run["id"], "train-43");
  EXPECT_EQ(run["state"], "QUEUED");
  EXPECT_EQ(run["steps"][0]["gates"][0]["gate"], "CAPACITY");
  EXPECT_EQ(WithoutTimes(run["created_at"]), "TIME");
  EXPECT_EQ(document["runs"][1]["gpu_seconds"], 12.345);
}

TEST_F(RunsCommandTest, StatusTellsWhatIsInUse) {
  server_.script().runs.push_back(MakeRun(41, "big", v1::RUN_STATE_RUNNING));
  const Finished tp = Tp({"status"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_THAT(tp.out, HasSubstr("alice: 16 cards in use by 1 job; 1 queued, 0 paused\nquota    no limits\n\nID "));
  const v1::ListRunsRequest request = server_.asked().lists.at(0);
  const absl::Duration reach = absl::Now() - FromProto(request.active_after());
  EXPECT_GT(reach, absl::Hours(24) - absl::Seconds(1));
  EXPECT_LT(reach, absl::Hours(24) + absl::Minutes(2));
  EXPECT_EQ(json::parse(Tp({"status", "-o", "json"}).out)["standing"]["cards"], 16);
}

TEST_F(RunsCommandTest, ShowIsOneScreen) {
  const Finished tp = Tp({"show", "eval-40"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(WithoutTimes(tp.out),
            "eval-40  FAILED\n"
            "reason      user_exit: rank 0-1 ended with exit code 3\n"
            "owner       alice\n"
            "project     default\n"
            "labels      team=vision\n"
            "created     TIME (3h ago)\n"
            "gpu_seconds 12.345\n"
            "retries     1\n"
            "files       alice/eval-40/ below the storage root: output/ results/ attempts/\n"
            "command     python3 train.py\n"
            "profile     h200:16 = 2 nodes x 8\n"
            "backend     local\n"
            "environment HF_TOKEN=*** LR=0.1\n"
            "failure     user_exit: rank 0-1 ended with exit code 3\n"
            "\n"
            "ATTEMPT  STATE   CREATED  LASTED  CARDS  GPU-SECONDS  NODES  EXIT\n"
            "      1  FAILED  2h ago       4m     16       16.000  n1,n2  exit 3 of rank 0-1\n"
            "      2  FAILED  1h ago       4m     16       16.000  n1,n2  exit 3 of rank 0-1\n");
}

TEST_F(RunsCommandTest, StatusOfARunIsShow) { EXPECT_EQ(Tp({"status", "40"}).out, Tp({"show", "40"}).out); }

TEST_F(RunsCommandTest, SecretsAreMaskedInEveryFormat) {
  for (const char* format : {"table", "wide", "json", "yaml"}) {
    const Finished tp = Tp({"show", "40", "-o", format});
    EXPECT_THAT(tp.out, Not(HasSubstr("hunter2"))) << format;
    EXPECT_THAT(tp.out, HasSubstr("HF_TOKEN")) << format;
  }
}

TEST_F(RunsCommandTest, WhyNamesTheGates) {
  const Finished tp = Tp({"why", "@last"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out,
            "train-43  QUEUED\n"
            "  CAPACITY  16 of 16 cards of h200 are in use; eval-40 frees them\n"
            "  WINDOW    h200 opens at 20:00 (closed for 1h, opens in 3h20m)\n");
  const json document = json::parse(Tp({"why", "43", "-o", "json"}).out);
  EXPECT_EQ(document["run"], "train-43");
  EXPECT_EQ(document["steps"][0]["gates"][1]["gate"], "WINDOW");
}

TEST_F(RunsCommandTest, WhySaysThatNothingHoldsARun) {
  EXPECT_THAT(Tp({"why", "40"}).out, HasSubstr("eval-40 is FAILED: nothing holds it"));
}

TEST_F(RunsCommandTest, UnknownRunsAreNotFound) {
  for (const char* command : {"show", "status", "why", "stop", "logs", "wait", "events"}) {
    const Finished tp = Tp({command, "nosuch-7"});
    EXPECT_EQ(tp.exit_code, 4) << command;
    EXPECT_EQ(tp.err, "tp: there is no run nosuch-7\n") << command;
    EXPECT_EQ(tp.out, "") << command;
  }
}

TEST_F(RunsCommandTest, ErrorsAreJsonForPrograms) {
  const Finished tp = Tp({"show", "nosuch-7", "-o", "json"});
  EXPECT_EQ(tp.exit_code, 4);
  const json document = json::parse(tp.err);
  EXPECT_EQ(document["error"]["code"], "NOT_FOUND");
  EXPECT_EQ(document["error"]["reason"], "RUN_NOT_FOUND");
  EXPECT_EQ(document["error"]["field"], "run");
}

TEST_F(RunsCommandTest, HostileNamesDoNotReachTheTerminal) {
  v1::Run& run = server_.script().runs.front();
  run.set_reason("\x1b]0;owned\x07\u202e\n");
  (*run.mutable_labels())["\x1b[2J"] = "\u009b";
  for (const char* command : {"show", "ls", "why"}) {
    for (const char* format : {"table", "wide", "json", "yaml"}) {
      std::vector<std::string> arguments = {command, "-o", format};
      if (std::string(command) != "ls") arguments.emplace_back("43");
      const Finished tp = Tp(arguments);
      EXPECT_EQ(tp.exit_code, 0) << tp.err;
      EXPECT_THAT(tp.out, Not(HasSubstr("\x1b"))) << command << format;
      EXPECT_THAT(tp.out, Not(HasSubstr("\u202e"))) << command << format;
      EXPECT_THAT(tp.out, Not(HasSubstr("\u009b"))) << command << format;
    }
  }
}

v1::Event MakeEvent(int64_t revision, int64_t run, v1::JobState from, v1::JobState to) {
  v1::Event event;
  event.set_revision(revision);
  event.set_run(run);
  event.set_step(1);
  event.set_attempt(from == v1::JOB_STATE_UNSPECIFIED ? 0 : 1);
  *event.mutable_at() = ToProto(absl::Now() - absl::Minutes(2));
  event.set_event("launched");
  event.set_from(from);
  event.set_to(to);
  event.set_note("by alice");
  return event;
}

TEST_F(RunsCommandTest, EventsAreATable) {
  server_.script().events = {MakeEvent(5, 43, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED),
                             MakeEvent(9, 43, v1::JOB_STATE_QUEUED, v1::JOB_STATE_SUBMITTED)};
  const Finished tp = Tp({"events", "43"});
  EXPECT_EQ(tp.out,
            "AGE  STEP  ATTEMPT  EVENT     STATE                NOTE\n"
            " 2m     1        -  launched  QUEUED               by alice\n"
            " 2m     1        1  launched  QUEUED -> SUBMITTED  by alice\n");
  EXPECT_EQ(json::parse(Tp({"events", "43", "-o", "json"}).out)["events"][1]["revision"], 9);
}

TEST_F(RunsCommandTest, FollowedEventsAreThoseOfTheRunEachOnce) {
  server_.script().events = {MakeEvent(5, 43, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED)};
  auto& stream = server_.script().event_stream;
  *stream.emplace_back().mutable_event() = server_.script().events[0];
  *stream.emplace_back().mutable_event() = MakeEvent(6, 40, v1::JOB_STATE_QUEUED, v1::JOB_STATE_SUBMITTED);
  stream.emplace_back().set_bookmark(7);
  *stream.emplace_back().mutable_event() = MakeEvent(8, 43, v1::JOB_STATE_QUEUED, v1::JOB_STATE_SUBMITTED);
  const Finished tp = Tp({"events", "43", "-f"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(WithoutTimes(tp.out),
            "TIME  run 43 step 1  launched  QUEUED  by alice\n"
            "TIME  run 43 step 1 attempt 1  launched  QUEUED -> SUBMITTED  by alice\n");
}

TEST_F(RunsCommandTest, EventsNeedARunOrAFollow) { EXPECT_EQ(Tp({"events"}).exit_code, 2); }

}  // namespace
}  // namespace tp::cli
