// DESIGN 4 and 5, rule by rule, over Apply.
#include <csignal>

#include <gtest/gtest.h>

#include "core/ledger.h"
#include "world.h"

namespace tp::core::test {

JobState World::Fail(const absl::Status& status) {
  ADD_FAILURE() << status;
  return step.state;
}

namespace {

using enum JobState;

TEST(Lifecycle, OneJobToItsEnd) {
  World w(2);
  EXPECT_EQ(w.Do(Admit(2)), kSubmitted);
  EXPECT_TRUE(w.Wants<LaunchAttempt>());
  EXPECT_EQ(w.Do(LaunchAnswered{LaunchAccepted{}}), kPending);
  EXPECT_EQ(w.Do(Seen({Up(0), Rank(1, Tree::kUnknown)})), kPending);
  EXPECT_EQ(w.Do(Seen({Up(0), Up(1)})), kRunning);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000)), Up(1)})), kRunning);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000)), Over(1, Exit(0, 6100))}, true)), kSucceeded);
  ASSERT_TRUE(w.Wants<SettleMeter>());
  EXPECT_EQ(w.step.past.at(0).metered_ms, 6000);  // last start 100 ms, last end 6100 ms
  EXPECT_TRUE(w.Wants<RemoveAttempt>());
}

TEST(Lifecycle, ShortJobPassesRunningInOneCommit) {
  World w;
  w.Do(Admit(1));
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0))}, true)), kSucceeded);
  ASSERT_EQ(w.last.taken.size(), 4u);
  EXPECT_EQ(w.last.taken[0].to, kPending);
  EXPECT_EQ(w.last.taken[1].to, kRunning);
  EXPECT_TRUE(w.Wants<SettleMeter>());
}

TEST(Lifecycle, EndedButNotVerifiedGoneStaysRunningWithTheMeterClosed) {
  World w;
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0))}, false)), kRunning);
  EXPECT_TRUE(w.step.attempt->meter->closed_unix_us);
  EXPECT_EQ(StateText(w.step, w.now), "RUNNING (ending, exit 0)");
  EXPECT_FALSE(w.Wants<SettleMeter>());
  EXPECT_EQ(w.After(absl::Seconds(30), TimerFired{}), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kKill);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0))}, true)), kSucceeded);
}

TEST(Lifecycle, UnknownChangesNothingAndShows) {
  World w;
  w.RunAll();
  EXPECT_EQ(w.After(absl::Minutes(3), Nothing("slurmctld unreachable")), kRunning);
  EXPECT_EQ(StateText(w.step, w.now + absl::Minutes(1)), "RUNNING, last seen 4m ago: slurmctld unreachable");
  for (int i = 0; i < 25; ++i) EXPECT_EQ(w.After(absl::Hours(1), Nothing()), kRunning);
  EXPECT_EQ(w.Do(Seen({Up(0)})), kRunning);
  EXPECT_EQ(w.step.ran, absl::ZeroDuration());  // unobserved time counts for no limit
}

TEST(Lifecycle, FirstFailedRankStopsTheOthersAndIsNamed) {
  World w(2);
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Up(0), Over(1, Exit(3))})), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1, 5100, SignalledBy::kTpd)), Over(1, Exit(3))}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kUserExit);
  EXPECT_EQ(w.step.failure->sentence, "rank 0-1: exit 3: its log says why");
  EXPECT_EQ(w.step.exit, "rank 0-1: exit 3");
}

TEST(Lifecycle, KilledJobNamesTheSignalAndExit137TheCode) {
  World killed;
  killed.RunAll();
  EXPECT_EQ(killed.Do(Seen({Over(0, Killed(SIGKILL))}, true)), kFailed);
  EXPECT_EQ(killed.step.exit, "killed by SIGKILL");
  World coded;
  coded.RunAll();
  EXPECT_EQ(coded.Do(Seen({Over(0, Exit(137))}, true)), kFailed);
  EXPECT_EQ(coded.step.exit, "exit 137");
}

TEST(Lifecycle, TermFromOutsideIsNeverSuccess) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000, SignalledBy::kOther))}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kEvicted);
}

TEST(Lifecycle, RunnerGoneWithoutRecordIsLost) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0))}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kLost);
}

TEST(Lifecycle, StopOfQueuedIsImmediate) {
  World w;
  EXPECT_EQ(w.Do(StopRequested{}), kStopped);
  EXPECT_TRUE(w.effects.empty());
  EXPECT_EQ(w.Do(StopRequested{}), kStopped);
}

TEST(Lifecycle, StopOfSubmittedFencesFirst) {
  World w;
  w.Do(Admit(1));
  EXPECT_EQ(w.Do(StopRequested{}), kSubmitted);
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  w.Do(LaunchAnswered{LaunchAccepted{}});
  EXPECT_EQ(w.Do(FenceAnswered{FenceWon{}}), kPending);
  EXPECT_TRUE(w.Wants<RemoveAttempt>());
  EXPECT_EQ(w.Do(Fenced()), kStopped);
  EXPECT_FALSE(w.Wants<SettleMeter>());
}

TEST(Lifecycle, StopThatLosesTheFenceSignals) {
  World w;
  w.Do(Admit(1));
  w.Do(StopRequested{});
  EXPECT_EQ(w.Do(FenceAnswered{FenceLost{"nonce"}}), kPending);
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  EXPECT_EQ(w.Do(Seen({Up(0)})), kRunning);
  EXPECT_EQ(w.After(absl::Seconds(30), TimerFired{}), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kKill);
  EXPECT_EQ(w.Do(Seen({Over(0, Killed(SIGKILL, 9000, SignalledBy::kTpd))}, true)), kStopped);
}

TEST(Lifecycle, StopAfterAllRanksEndedZeroIsSucceededAndSaysSo) {
  World w;
  w.RunAll();
  w.Do(Seen({Over(0, Exit(0))}, false));
  w.Do(StopRequested{});
  EXPECT_NE(w.last.taken.at(0).note.find("SUCCEEDED"), std::string::npos);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0))}, true)), kSucceeded);
}

TEST(Lifecycle, StopOverridesTheNameOfAFailure) {
  World w(2);
  w.RunAll();
  w.Do(Seen({Up(0), Over(1, Exit(3))}));
  w.Do(StopRequested{});
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1)), Over(1, Exit(3))}, true)), kStopped);
}

TEST(Lifecycle, PauseWarnsThenTermsThenKills) {
  World w;
  w.RunAll();
  EXPECT_EQ(w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)}), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kWarn);
  EXPECT_EQ(w.After(absl::Seconds(60), TimerFired{}), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  EXPECT_EQ(w.After(absl::Seconds(30), TimerFired{}), kRunning);
  EXPECT_EQ(w.Signal(), StopLevel::kKill);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(9, 5000, SignalledBy::kTpd))}, true)), kPaused);
  EXPECT_EQ(w.step.retry_count, 0);
  EXPECT_EQ(w.Do(ResumeRequested{}), kQueued);
  EXPECT_EQ(w.RunAll(), kRunning);
  EXPECT_EQ(w.step.attempts, 2);
  EXPECT_EQ(w.step.retry_count, 0);
}

TEST(Lifecycle, PauseThatFindsAFailureAlreadyReadIsFailed) {
  World w(2);
  w.RunAll();
  w.Do(Seen({Up(0), Over(1, Exit(3))}));
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1)), Over(1, Exit(3))}, true)), kFailed);
}

TEST(Lifecycle, FailureUnderPauseWithBudgetIsPausedWithOneRetryMore) {
  World w(2);
  w.policy.user_retries = 1;
  w.RunAll();
  w.Do(Seen({Up(0), Over(1, Exit(3))}));
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1)), Over(1, Exit(3))}, true)), kPaused);
  EXPECT_EQ(w.step.retry_count, 1);
  EXPECT_TRUE(w.step.cooldown_until);
}

TEST(Lifecycle, PausedWithAllRanksZeroUnsignalledIsSucceeded) {
  World w;
  w.RunAll();
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0))}, true)), kSucceeded);
}

TEST(Lifecycle, ResumeWhileBeingPausedEndsInQueued) {
  World w;
  w.RunAll();
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  EXPECT_EQ(w.Do(ResumeRequested{}), kRunning);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000, SignalledBy::kTpd))}, true)), kQueued);
  EXPECT_FALSE(w.step.backoff_until);
}

TEST(Lifecycle, EachHolderLiftsItsOwnAndAdminsAll) {
  World w;
  w.Do(PauseRequested{Holder::kAdmin, {}});
  w.Do(PauseRequested{Holder::kOwner, {}});
  EXPECT_EQ(w.Do(ResumeRequested{Holder::kOwner}), kPaused);
  EXPECT_EQ(w.Do(ResumeRequested{Holder::kAdmin}), kQueued);
}

TEST(Lifecycle, WindowHoldsQueuedAndWithdrawsPending) {
  World w;
  EXPECT_EQ(w.Do(PauseRequested{Holder::kWindow, {}}), kQueued);
  EXPECT_FALSE(w.step.pause.any());
  w.Launch();
  w.Do(PauseRequested{Holder::kWindow, {}});
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kQueued);
  EXPECT_FALSE(w.step.backoff_until);
}

TEST(Lifecycle, WindowThatLosesTheFencePauses) {
  World w;
  w.Launch();
  w.Do(PauseRequested{Holder::kWindow, {}});
  w.Do(FenceAnswered{FenceLost{"nonce"}});
  EXPECT_EQ(w.Signal(), StopLevel::kWarn);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000, SignalledBy::kTpd))}, true)), kPaused);
  EXPECT_TRUE(w.step.pause.window);
}

TEST(Lifecycle, AutomaticRetryOnlyAfterRunningAndWithinBudget) {
  World w;
  w.policy.user_retries = 1;
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1))}, true)), kQueued);
  EXPECT_EQ(w.step.retry_count, 1);
  EXPECT_EQ(*w.step.cooldown_until, w.now + w.policy.retry_cooldown);
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(1))}, true)), kFailed);
  EXPECT_EQ(w.Do(RetryRequested{}), kQueued);
  EXPECT_EQ(w.step.retry_count, 2);
  EXPECT_EQ(w.step.user_retries_used, 0);  // a manual retry renews the budget

  World early(2);
  early.policy.user_retries = 1;
  early.Launch();
  EXPECT_EQ(early.Do(Seen({Over(0, Exit(1)), Rank(1, Tree::kGone)}, true)), kFailed);
}

TEST(Lifecycle, StepThatRanRetriesThoughItsNextAttemptDiesBeforeRunning) {
  World w(2);
  w.policy.infrastructure_retries = 2;
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0)), Rank(1, Tree::kGone, Start(0))}, true)), kQueued);
  w.Launch();
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0)), Rank(1, Tree::kGone)}, true)), kQueued);
  EXPECT_EQ(w.step.retry_count, 2);
  EXPECT_EQ(w.step.infrastructure_retries_used, 2);
  EXPECT_EQ(w.step.relaunches, 0);
}

TEST(Lifecycle, StepThatRanAndFailsBeforeRunningUnderAPauseKeepsItsRetry) {
  World w(2);
  w.RunAll();
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0)), Rank(1, Tree::kGone, Start(0))}, true)), kQueued);
  w.Launch();
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0)), Rank(1, Tree::kAlive)})), kPending);
  w.Do(PauseRequested{Holder::kOwner, {}});
  EXPECT_EQ(w.Do(Seen({Rank(0, Tree::kGone, Start(0)), Rank(1, Tree::kGone)}, true)), kPaused);
  EXPECT_EQ(w.step.retry_count, 2);
  EXPECT_TRUE(w.step.cooldown_until.has_value());
}

TEST(Lifecycle, RefusedForNowRelaunchesWithGrowingDelay) {
  World w;
  absl::Duration previous;
  for (int i = 0; i < 5; ++i) {
    w.Do(Admit(1, w.step.attempts + 1));
    w.Do(LaunchAnswered{LaunchRefused{"no room"}});
    w.Do(FenceAnswered{FenceWon{}});
    EXPECT_EQ(w.Do(Fenced()), kQueued);
    EXPECT_GT(*w.step.backoff_until - w.now, previous);
    previous = *w.step.backoff_until - w.now;
  }
  EXPECT_EQ(w.step.retry_count, 0);
  EXPECT_EQ(w.step.attempts, 5);
}

TEST(Lifecycle, RejectedForGoodFailsOnlyAfterTheFence) {
  World w;
  w.Do(Admit(1));
  EXPECT_EQ(w.Do(LaunchAnswered{LaunchRejected{LaunchRejected::Kind::kImage, "no such image"}}), kSubmitted);
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kImage);
}

TEST(Lifecycle, AbsentNeedsTwoAnswersAGraceApart) {
  World w;
  w.Do(Admit(1));
  w.Do(LaunchAnswered{LaunchIndeterminate{"reply lost"}});
  EXPECT_EQ(w.Do(Gone()), kSubmitted);
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Seconds(1), Gone());
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Seconds(5), Gone());
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Gone(Claim::kFenced)), kQueued);
}

TEST(Lifecycle, AbsentWhileTheCallIsUnderWayCountsNothing) {
  World w;
  w.Do(Admit(1));
  for (int i = 0; i < 5; ++i) w.After(absl::Seconds(10), Gone());
  EXPECT_FALSE(w.step.attempt->ending);
  EXPECT_EQ(w.Do(LaunchAnswered{LaunchAccepted{}}), kPending);
}

TEST(Lifecycle, OwnedAndVerifiedAbsentIsLost) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  EXPECT_EQ(w.Do(Gone(Claim::kThisLaunch)), kRunning);
  EXPECT_EQ(w.After(absl::Seconds(10), Gone(Claim::kThisLaunch)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kLost);
}

TEST(Lifecycle, TimeLimitSumsOverPausesAndIsResetByRetry) {
  World w;
  w.step.spec.time_limit = absl::Seconds(100);
  w.RunAll();
  w.After(absl::Seconds(60), Seen({Up(0)}));
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(1)});
  w.Do(Seen({Over(0, Exit(0, 5000, SignalledBy::kTpd))}, true));
  w.Do(ResumeRequested{});
  w.RunAll();
  w.After(absl::Seconds(39), Seen({Up(0)}));
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Seconds(1), Seen({Up(0)}));
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 9000, SignalledBy::kTpd))}, true)), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kTimeLimit);
  w.Do(RetryRequested{});
  EXPECT_EQ(w.step.ran, absl::ZeroDuration());
}

TEST(Lifecycle, StartTimeoutOfUnownedFencesThenFails) {
  World w;
  w.Launch();
  Present granted;
  granted.cards_granted = true;
  w.Do(Observed{granted});
  w.After(absl::Minutes(10), Observed{granted});
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  w.Do(FenceAnswered{FenceWon{}});
  EXPECT_EQ(w.Do(Fenced()), kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kStartTimeout);
}

TEST(Lifecycle, PendingTimeoutWithdrawsAndLapsesWhenARankOwnsIt) {
  World w;
  w.step.spec.pending_timeout = absl::Minutes(5);
  w.Launch();
  const Observed waiting{Present{}};
  w.After(absl::Minutes(5), waiting);
  EXPECT_TRUE(w.Wants<FenceAttempt>());
  EXPECT_EQ(w.Do(FenceAnswered{FenceLost{"nonce"}}), kPending);
  EXPECT_FALSE(w.step.attempt->ending);
  EXPECT_EQ(w.Do(Seen({Up(0)})), kRunning);
}

TEST(Lifecycle, SnapshotGoneRefusesResumeAndRetry) {
  World w;
  w.Do(PauseRequested{Holder::kOwner, {}});
  EXPECT_EQ(w.Try(ResumeRequested{Holder::kOwner, false}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(w.step.state, kPaused);
  w.Do(StopRequested{});
  EXPECT_EQ(w.Try(RetryRequested{false}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(w.Do(RetryRequested{true}), kQueued);
  EXPECT_EQ(w.step.retry_count, 1);
}

TEST(Lifecycle, LateAnswersOfALeftAttemptAreNoOps) {
  World w;
  w.RunAll();
  w.Do(Seen({Over(0, Exit(0))}, true));
  const Step over = w.step;
  for (const Event& late : std::vector<Event>{LaunchAnswered{LaunchAccepted{}}, FenceAnswered{FenceWon{}}, Gone(),
                                              Seen({Over(0, Exit(1))}, true), TimerFired{}, DependencyFailed{"x"}}) {
    const auto result = w.Try(late);
    ASSERT_TRUE(result.ok());
    EXPECT_FALSE(result->durable);
    EXPECT_EQ(w.step, over);
  }
}

TEST(Lifecycle, FenceThatFailsIsTriedAgain) {
  World w;
  w.Launch();
  w.Do(StopRequested{});
  w.Do(FenceAnswered{FenceFailed{"EIO"}});
  EXPECT_EQ(w.step.backoff_reason, "EIO") << "somebody who waits is to be told";
  EXPECT_EQ(w.After(w.policy.fence_repeat, TimerFired{}), kPending);
  EXPECT_TRUE(w.Wants<FenceAttempt>());
}

TEST(Lifecycle, ExitZeroOfTheEngineWithoutRecordsNeedsTheClaim) {
  World w;
  w.RunAll();
  Present ended = std::get<Present>(Seen({Rank(0, Tree::kGone, Start(0))}, true).observation);
  ended.engine_end = EngineEnd::kExitedZero;
  EXPECT_EQ(w.Do(Observed{ended}), kSucceeded);
}

}  // namespace
}  // namespace tp::core::test
