// What an attempt's evidence makes of it where several things say something.
#include <gtest/gtest.h>

#include "world.h"

namespace tp::core::test {
namespace {

using enum JobState;

TEST(Evidence, AbsentUnderAPauseWhoseSignalWasNotSentIsPaused) {
  World w;
  w.Launch();
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  w.Do(Gone(Claim::kThisLaunch));
  EXPECT_EQ(w.After(absl::Seconds(10), Gone(Claim::kThisLaunch)), kPaused);
}

TEST(Evidence, TheEngineExplainsATerm) {
  World w;
  w.RunAll();
  Present ended = std::get<Present>(Seen({Over(0, Exit(1, 5000, SignalledBy::kOther))}, true).observation);
  ended.engine_end = EngineEnd::kTimeLimit;
  EXPECT_EQ(w.Do(Observed{ended}), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kTimeLimit);
}

TEST(Evidence, TheEngineExplainsATermAfterItsRecordWasRead) {
  World w;
  w.RunAll();
  const RankObservation over = Over(0, Exit(143, 5000, SignalledBy::kOther));
  w.Do(Seen({over}));
  Present ended = std::get<Present>(Seen({over}, true).observation);
  ended.engine_end = EngineEnd::kTimeLimit;
  EXPECT_EQ(w.Do(Observed{ended}), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kTimeLimit);
}

TEST(Evidence, ExitZeroOfTheEngineAfterOurSignalIsNoSuccess) {
  World w;
  w.RunAll();
  w.Do(StopRequested{});
  Present ended = std::get<Present>(Seen({Rank(0, Tree::kGone, Start(0))}, true).observation);
  ended.engine_end = EngineEnd::kExitedZero;
  EXPECT_EQ(w.Do(Observed{ended}), kStopped);

  World paused;
  paused.RunAll();
  paused.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  EXPECT_EQ(paused.Do(Observed{ended}), kPaused);
}

TEST(Evidence, ExitZeroOfTheEngineWithoutAnyRecordLeavesPending) {
  World w;
  w.Launch();
  Present ended = std::get<Present>(Seen({Rank(0, Tree::kGone)}, true).observation);
  ended.engine_end = EngineEnd::kExitedZero;
  EXPECT_EQ(w.Do(Observed{ended}), kSucceeded);
}

TEST(Evidence, AnImageThatCannotBeUsedIsNotTriedForEver) {
  World w;
  w.Launch();
  Present ended;
  ended.phase = EnginePhase::kEnded;
  ended.freed = true;
  ended.engine_end = EngineEnd::kImage;
  ended.reason = "manifest unknown";
  w.Do(Observed{ended});
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kFailed);
  ASSERT_TRUE(w.step.failure);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kImage);
}

TEST(Evidence, AnEndBeforeItRanSaysWhatTheEngineSaid) {
  World w;
  w.Launch();
  Present ended;
  ended.phase = EnginePhase::kEnded;
  ended.freed = true;
  ended.engine_end = EngineEnd::kPreempted;
  ended.reason = "preempted by job 7";
  w.Do(Observed{ended});
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kQueued);
  EXPECT_NE(w.step.backoff_reason.find("preempted by job 7"), std::string::npos) << w.step.backoff_reason;
}

TEST(Evidence, AMemoryKillInsideTheJobIsOutOfMemory) {
  World w;
  w.RunAll();
  EndRecord end = Exit(1);  // torchrun reports its killed child so
  end.oom_kills = 1;
  EXPECT_EQ(w.Do(Seen({Over(0, end)}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kUserOom);
}

TEST(Evidence, AnEndWhoseLogTellsMoreIsSaidSo) {
  World w;
  w.RunAll();
  EndRecord end = Exit(1);
  end.log_mark = LogMark::kCudaOutOfMemory;
  EXPECT_EQ(w.Do(Seen({Over(0, end)}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kUserOom);
  EXPECT_NE(w.step.failure->sentence.find("exit 1: its log says CUDA out of memory"), std::string::npos)
      << w.step.failure->sentence;
}

TEST(Evidence, OfSeveralReadAtOnceTheOneThatTellsMostIsNamed) {
  World w(3);
  w.RunAll();
  EndRecord echo = Exit(1);
  echo.log_mark = LogMark::kNcclError;
  EndRecord telling = Exit(1);
  telling.log_mark = LogMark::kDiskFull;
  EXPECT_EQ(w.Do(Seen({Over(0, echo), Over(1, Exit(1)), Over(2, telling)}, true)), kFailed);
  EXPECT_EQ(w.step.failure->sentence.find("rank 0-2"), 0U) << w.step.failure->sentence;
}

TEST(Evidence, TheBadNodeIsTheOneThatFailed) {
  World w(2);
  w.RunAll();
  w.Do(Seen({Up(0), Rank(1, Tree::kGone, Start(100))}));
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1, 9000, SignalledBy::kTpd)), Rank(1, Tree::kGone, Start(100))}, true)), kQueued);
  EXPECT_EQ(w.step.avoid_node, "node-2");
}

TEST(Evidence, ARejectionWithoutAReasonStillEnds) {
  World w;
  w.Do(Admit(1));
  w.Do(LaunchAnswered{LaunchRejected{LaunchRejected::Kind::kEngine, ""}});
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kFailed);
}

}  // namespace
}  // namespace tp::core::test
