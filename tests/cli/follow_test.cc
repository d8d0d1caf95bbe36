#include "cli/follow.h"

#include <gtest/gtest.h>

#include "cli/run_list.h"

namespace tp::cli {
namespace {

TEST(WaitVerdictTest, WithoutUntilOnlyTheEndCounts) {
  for (const auto state : {v1::RUN_STATE_QUEUED, v1::RUN_STATE_RUNNING, v1::RUN_STATE_PAUSED}) {
    EXPECT_EQ(WaitVerdict(state, std::nullopt), std::nullopt);
  }
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_SUCCEEDED, std::nullopt), ExitCode::kOk);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_FAILED, std::nullopt), ExitCode::kFailed);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_STOPPED, std::nullopt), ExitCode::kStopped);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_PARTIAL, std::nullopt), ExitCode::kPartial);
}

TEST(WaitVerdictTest, TheStateThatWasWaitedForIsOk) {
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_RUNNING, v1::RUN_STATE_RUNNING), ExitCode::kOk);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_FAILED, v1::RUN_STATE_FAILED), ExitCode::kOk);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING), std::nullopt);
}

TEST(WaitVerdictTest, AnEndThatCameFirstSpeaksForItself) {
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_RUNNING), ExitCode::kOk) << "it ran, and fast";
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_FAILED, v1::RUN_STATE_RUNNING), ExitCode::kFailed);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_STOPPED, v1::RUN_STATE_SUCCEEDED), ExitCode::kStopped);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_FAILED), ExitCode::kConflict);
  EXPECT_EQ(WaitVerdict(v1::RUN_STATE_SUCCEEDED, v1::RUN_STATE_PAUSED), ExitCode::kConflict);
}

TEST(ParseRunStateTest, NamesWhatExists) {
  EXPECT_EQ(*ParseRunState("running", "--state"), v1::RUN_STATE_RUNNING);
  const auto wrong = ParseRunState("done", "--state");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(std::string(wrong.status().message()),
            "--state done: no such state; there are QUEUED, SUBMITTED, PENDING, RUNNING, PAUSED, SUCCEEDED, FAILED, "
            "STOPPED, PARTIAL");
  EXPECT_FALSE(ParseRunState("unspecified", "--state").ok());
}

TEST(SummarizeUseTest, CountsLiveStepsAndWaitingRuns) {
  std::vector<v1::Run> runs(3);
  runs[0].set_state(v1::RUN_STATE_RUNNING);
  runs[0].add_steps()->set_state(v1::JOB_STATE_SUCCEEDED);
  runs[0].mutable_steps(0)->set_cards(8);
  v1::Step& live = *runs[0].add_steps();
  live.set_state(v1::JOB_STATE_RUNNING);
  live.set_cards(16);
  runs[1].set_state(v1::RUN_STATE_QUEUED);
  runs[2].set_state(v1::RUN_STATE_PAUSED);
  EXPECT_EQ(UseSentence("alice", SummarizeUse(runs)), "alice: 16 cards in use by 1 job; 1 queued, 1 paused");
}

}  // namespace
}  // namespace tp::cli
