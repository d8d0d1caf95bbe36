#include "api/log_follower.h"

#include <gtest/gtest.h>

#include "sample_runs.h"
#include "temp_dir.h"

namespace tp::api {
namespace {

class LogFollowerTest : public testing::Test {
 protected:
  LogFollower Make(LogSelection selection) const {
    return LogFollower({.storage_root = dir_.path(), .log_max_bytes = 0, .heartbeat_ms = 0}, std::move(selection));
  }

  static std::string File(int attempt, const std::string& name) {
    return "ana/train-7/attempts/main-" + std::to_string(attempt) + "/" + name;
  }

  // What comes until there is nothing for now.
  static std::string Drain(LogFollower& follower) {
    std::string all;
    for (;;) {
      const auto piece = follower.Next();
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok() || !*piece) return all;
      all += "[" + (*piece)->rank + "]" + (*piece)->bytes.data;
    }
  }

  TempDir dir_;
  const core::RunWithSteps running_ = RunningRun(7, "ana");
};

TEST_F(LogFollowerTest, WithoutFollowGivesWhatThereIs) {
  dir_.Write(File(1, "0-0.log"), "hello\n");
  LogFollower follower = Make({});
  ASSERT_TRUE(follower.Update(running_).ok());
  EXPECT_EQ(Drain(follower), "[0-0]hello\n");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, PiecesSayOfWhichStepTheyAre) {
  core::RunWithSteps pipeline = EndedRun(running_, core::JobState::kSucceeded);
  pipeline.steps.push_back(pipeline.steps[0]);
  pipeline.steps[1].ref.step = 1;
  pipeline.steps[1].spec.name = "eval";
  dir_.Write(File(1, "0-0.log"), "trained");
  dir_.Write("ana/train-7/attempts/eval-1/0-0.log", "evaluated");
  for (const int step : {1, 2}) {
    LogFollower follower = Make({.step = step});
    ASSERT_TRUE(follower.Update(pipeline).ok());
    const auto piece = follower.Next();
    ASSERT_TRUE(piece.ok() && *piece);
    EXPECT_EQ((*piece)->step, step);
    EXPECT_EQ((*piece)->attempt, 1);
    EXPECT_EQ((*piece)->bytes.data, step == 1 ? "trained" : "evaluated");
  }
}

// A run of two steps: the first over, with `trained` in its log.
core::RunWithSteps Pipeline(const core::RunWithSteps& running) {
  core::RunWithSteps pipeline = EndedRun(running, core::JobState::kSucceeded);
  pipeline.steps.push_back(pipeline.steps[0]);
  pipeline.steps[1].ref.step = 1;
  pipeline.steps[1].spec.name = "eval";
  pipeline.steps[1].spec.after = core::After{.step = 0, .when = core::AfterWhen::kSuccess};
  return pipeline;
}

TEST_F(LogFollowerTest, AllStepsComeOneAfterAnotherWithTheirNames) {
  core::RunWithSteps pipeline = Pipeline(running_);
  pipeline.steps[1].attempts = 2;
  dir_.Write(File(1, "0-0.log"), "trained");
  dir_.Write("ana/train-7/attempts/eval-1/0-0.log", "failed");
  dir_.Write("ana/train-7/attempts/eval-2/0-0.log", "evaluated");
  LogFollower follower = Make({});
  ASSERT_TRUE(follower.Update(pipeline).ok());
  const auto first = follower.Next();
  ASSERT_TRUE(first.ok() && *first) << first.status();
  EXPECT_EQ((*first)->step_name, "main");
  EXPECT_EQ((*first)->bytes.data, "trained");
  const auto second = follower.Next();
  ASSERT_TRUE(second.ok() && *second) << second.status();
  EXPECT_EQ((*second)->step_name, "eval");
  EXPECT_EQ((*second)->bytes.data, "evaluated") << "of each step the newest attempt";
  EXPECT_EQ(Drain(follower), "");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, FollowingTakesUpStepsAsTheyStart) {
  core::RunWithSteps pipeline = Pipeline(running_);
  pipeline.steps[1].state = core::JobState::kQueued;
  pipeline.steps[1].attempts = 0;
  pipeline.steps[1].past.clear();
  dir_.Write(File(1, "0-0.log"), "trained");
  LogFollower follower = Make({.follow = true});
  ASSERT_TRUE(follower.Update(pipeline).ok());
  EXPECT_EQ(Drain(follower), "[0-0]trained");
  EXPECT_FALSE(follower.finished());
  dir_.Write("ana/train-7/attempts/eval-1/0-0.log", "evaluated");
  ASSERT_TRUE(follower.Update(Pipeline(running_)).ok());
  EXPECT_EQ(Drain(follower), "[0-0]evaluated");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, ATailIsOfTheNewestStep) {
  dir_.Write(File(1, "0-0.log"), "trained\n");
  dir_.Write("ana/train-7/attempts/eval-1/0-0.log", "a\nb\n");
  for (const bool follow : {false, true}) {
    LogFollower follower = Make({.tail_lines = 1, .follow = follow});
    ASSERT_TRUE(follower.Update(Pipeline(running_)).ok());
    EXPECT_EQ(Drain(follower), "[0-0]b\n");
    EXPECT_TRUE(follower.finished());
  }
}

TEST_F(LogFollowerTest, OfEachStepTheRanksItHas) {
  dir_.Write(File(1, "0-0.log"), "");
  dir_.Write(File(1, "0-1.log"), "second rank");
  dir_.Write("ana/train-7/attempts/eval-1/0-0.log", "evaluated");
  LogFollower follower = Make({.ranks = {"0-1"}});
  ASSERT_TRUE(follower.Update(Pipeline(running_)).ok());
  EXPECT_EQ(Drain(follower), "[0-1]second rank");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, FollowEndsWhenTheRunIsOverAndEverythingIsRead) {
  LogFollower follower = Make({.follow = true});
  ASSERT_TRUE(follower.Update(running_).ok());
  EXPECT_EQ(Drain(follower), "");
  dir_.Write(File(1, "0-0.log"), "a");
  EXPECT_EQ(Drain(follower), "[0-0]a");
  EXPECT_FALSE(follower.finished());
  dir_.Append(File(1, "0-0.log"), "b");
  ASSERT_TRUE(follower.Update(EndedRun(running_, core::JobState::kSucceeded)).ok());
  EXPECT_EQ(Drain(follower), "[0-0]b");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, FollowGoesOnWithTheNextAttempt) {
  dir_.Write(File(1, "0-0.log"), "first");
  LogFollower follower = Make({.follow = true});
  ASSERT_TRUE(follower.Update(running_).ok());
  EXPECT_EQ(Drain(follower), "[0-0]first");

  core::RunWithSteps queued = EndedRun(running_, core::JobState::kQueued);
  ASSERT_TRUE(follower.Update(queued).ok());
  EXPECT_EQ(Drain(follower), "");
  EXPECT_FALSE(follower.finished()) << "a retry follows";

  core::RunWithSteps again = running_;
  again.steps[0].attempts = 2;
  again.steps[0].attempt->number = 2;
  dir_.Write(File(2, "0-0.log"), "second");
  ASSERT_TRUE(follower.Update(again).ok());
  EXPECT_EQ(Drain(follower), "[0-0]second");
  ASSERT_TRUE(follower.Update(EndedRun(again, core::JobState::kFailed)).ok());
  EXPECT_EQ(Drain(follower), "");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, ACertainAttemptEndsTheFollow) {
  dir_.Write(File(1, "0-0.log"), "first");
  LogFollower follower = Make({.attempt = 1, .follow = true});
  ASSERT_TRUE(follower.Update(EndedRun(running_, core::JobState::kQueued)).ok());
  EXPECT_EQ(Drain(follower), "[0-0]first");
  EXPECT_TRUE(follower.finished());
}

TEST_F(LogFollowerTest, RanksTakeTurns) {
  dir_.Write(File(1, "0-0.log"), "zero");
  dir_.Write(File(1, "0-1.log"), "one");
  LogFollower all = Make({.ranks = {"*"}});
  ASSERT_TRUE(all.Update(running_).ok());
  EXPECT_EQ(Drain(all), "[0-0]zero[0-1]one");
  LogFollower second = Make({.ranks = {"0-1"}});
  ASSERT_TRUE(second.Update(running_).ok());
  EXPECT_EQ(Drain(second), "[0-1]one");
}

TEST_F(LogFollowerTest, AllRanksOfAnAttemptThatIsOverComeFromItsFiles) {
  for (const char* name : {"0-10.log", "0-2.log", "1-0.log", "0-2.system.log", "spec.json"})
    dir_.Write(File(1, name), "x");
  LogFollower follower = Make({.ranks = {"*"}});
  ASSERT_TRUE(follower.Update(EndedRun(running_, core::JobState::kSucceeded)).ok());
  EXPECT_EQ(Drain(follower), "[0-2]x[0-10]x[1-0]x");
}

TEST_F(LogFollowerTest, AnUnknownRankNamesThoseThereAre) {
  dir_.Write(File(1, "0-0.log"), "x");
  LogFollower follower = Make({.ranks = {"3-0"}});
  ASSERT_TRUE(follower.Update(running_).ok());
  const auto piece = follower.Next();
  EXPECT_EQ(piece.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(piece.status().ToString().find("0-0 to 0-1"), std::string::npos) << piece.status();
}

TEST_F(LogFollowerTest, TheTailIsOfTheFirstAttemptOnly) {
  dir_.Write(File(1, "0-0.log"), "1\n2\n3\n");
  dir_.Write(File(2, "0-0.log"), "4\n5\n");
  LogFollower follower = Make({.attempt = 0, .tail_lines = 1, .follow = true});
  ASSERT_TRUE(follower.Update(running_).ok());
  EXPECT_EQ(Drain(follower), "[0-0]3\n");
  core::RunWithSteps again = running_;
  again.steps[0].attempts = 2;
  again.steps[0].attempt->number = 2;
  ASSERT_TRUE(follower.Update(again).ok());
  EXPECT_EQ(Drain(follower), "[0-0]4\n5\n");
}

TEST_F(LogFollowerTest, SystemLog) {
  dir_.Write(File(1, "0-0.log"), "job");
  dir_.Write(File(1, "0-0.system.log"), "runner");
  LogFollower follower = Make({.system = true});
  ASSERT_TRUE(follower.Update(running_).ok());
  EXPECT_EQ(Drain(follower), "[0-0]runner");
}

TEST_F(LogFollowerTest, WithoutAnAttempt) {
  const core::RunWithSteps queued = QueuedRun(7, "ana");
  LogFollower now = Make({});
  EXPECT_EQ(now.Update(queued).code(), absl::StatusCode::kFailedPrecondition);

  LogFollower waiting = Make({.follow = true});
  ASSERT_TRUE(waiting.Update(queued).ok());
  EXPECT_EQ(Drain(waiting), "");
  EXPECT_FALSE(waiting.finished());
  ASSERT_TRUE(waiting.Update(EndedRun(queued, core::JobState::kStopped)).ok());
  EXPECT_TRUE(waiting.finished());

  LogFollower over = Make({});
  EXPECT_TRUE(over.Update(EndedRun(queued, core::JobState::kStopped)).ok());
  EXPECT_TRUE(over.finished());
}

TEST_F(LogFollowerTest, NoSuchStepOrAttempt) {
  EXPECT_EQ(Make({.step = 2}).Update(running_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Make({.attempt = 2}).Update(running_).code(), absl::StatusCode::kNotFound);
}

TEST_F(LogFollowerTest, ChecksTheSelection) {
  EXPECT_TRUE(CheckLogSelection({.ranks = {"0-0", "12-345", "*"}}).ok());
  for (const char* rank : {"", "0", "-", "0-", "-0", "a-0", "0-0-0", "../0", "0-1234567", "**"}) {
    EXPECT_EQ(CheckLogSelection({.ranks = {rank}}).code(), absl::StatusCode::kInvalidArgument) << rank;
  }
  EXPECT_FALSE(CheckLogSelection({.step = -1}).ok());
  EXPECT_FALSE(CheckLogSelection({.attempt = -1}).ok());
}

}  // namespace
}  // namespace tp::api
