// What is seen and what is not: deadlines, absence and the end of the meter.
#include <gtest/gtest.h>

#include "core/fold.h"
#include "world.h"

namespace tp::core::test {
namespace {

using enum JobState;

Observed Granted() {
  Present granted;
  granted.cards_granted = true;
  return {granted};
}

TEST(Sight, RanksAreKnownByPoolAndRankInWhateverOrderTheyCome) {
  World w(3);
  w.Launch();
  RankObservation stranger = Up(7);
  RankObservation other_pool = Up(0);
  other_pool.pool = 1;
  w.Do(Seen({Up(2), stranger, other_pool, Up(0)}));
  const std::vector<RankObservation>& ranks = w.step.attempt->ranks;
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].started, Start(0));
  EXPECT_FALSE(ranks[1].started);
  EXPECT_EQ(ranks[2].started, Start(200));
}

TEST(Sight, TimeUnderUnknownIsNoPartOfTheStartTimeout) {
  World w;
  w.Launch();
  w.Do(Granted());
  w.After(absl::Minutes(1), Nothing());
  w.After(absl::Minutes(30), Granted());
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Minutes(9), Granted());
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Minutes(1), Granted());
  ASSERT_TRUE(w.step.attempt->ending);
  EXPECT_EQ(w.step.attempt->ending->cause, EndCause::kStartTimeout);
}

TEST(Sight, TimeUnderUnknownIsNoPartOfThePendingTimeout) {
  World w;
  w.step.spec.pending_timeout = absl::Minutes(5);
  w.Launch();
  const Observed waiting{Present{}};
  w.After(absl::Minutes(1), waiting);
  w.Do(Nothing());
  w.After(absl::Hours(1), waiting);
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Minutes(4), waiting);
  ASSERT_TRUE(w.step.attempt->ending);
  EXPECT_EQ(w.step.attempt->ending->cause, EndCause::kPendingTimeout);
}

TEST(Sight, TheWarningsGraceWaitsWhileTheJobCannotBeSeen) {
  World w;
  w.RunAll();
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  w.After(absl::Seconds(10), Nothing("host unreachable"));
  w.After(absl::Seconds(300), TimerFired{});
  EXPECT_FALSE(w.Signal());
  EXPECT_FALSE(NextTimer(w.step));
  w.Do(Seen({Up(0)}));
  ASSERT_TRUE(NextTimer(w.step));
  w.After(absl::Seconds(49), TimerFired{});
  EXPECT_FALSE(w.Signal());
  w.After(absl::Seconds(1), TimerFired{});
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
}

TEST(Sight, TheGraceOfATermWaitsToo) {
  World w;
  w.RunAll();
  w.Do(StopRequested{});
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  w.Do(Nothing("host unreachable"));
  w.After(absl::Minutes(10), TimerFired{});
  EXPECT_FALSE(w.Signal());
  w.Do(Seen({Up(0)}));
  w.After(absl::Seconds(29), TimerFired{});
  EXPECT_FALSE(w.Signal());
  w.After(absl::Seconds(1), TimerFired{});
  EXPECT_EQ(w.Signal(), StopLevel::kKill);
}

TEST(Sight, AGraceGivenWhileTheJobCannotBeSeenBeginsWithTheNextSight) {
  World w;
  w.RunAll();
  w.Do(Nothing("host unreachable"));
  w.After(absl::Minutes(40), StopRequested{});
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  w.After(absl::Minutes(1), Seen({Up(0)}));
  w.After(absl::Seconds(29), TimerFired{});
  EXPECT_FALSE(w.Signal());
  w.After(absl::Seconds(1), TimerFired{});
  EXPECT_EQ(w.Signal(), StopLevel::kKill);
}

// tpd's clock is set while a job is stopped: the grace lasts as long as it was meant to.
TEST(Sight, AClockThatIsSetMovesDeadlinesAlong) {
  for (const absl::Duration by : {absl::Hours(5), -absl::Hours(5)}) {
    World w;
    w.RunAll();
    w.Do(StopRequested{});
    w.now += by;
    FoldClockSet(w.step, by);
    w.After(absl::Seconds(29), TimerFired{});
    EXPECT_EQ(w.Signal(), std::nullopt);
    w.After(absl::Seconds(1), TimerFired{});
    EXPECT_EQ(w.Signal(), StopLevel::kKill);
  }
}

TEST(Sight, AClockThatIsSetLeavesAWindowsPauseAsLongAsItWas) {
  for (const absl::Duration by : {absl::Hours(5), -absl::Hours(5)}) {
    World w;
    w.RunAll();
    w.Do(PauseRequested{Holder::kWindow, absl::ZeroDuration()});
    ASSERT_EQ(w.Do(Seen({Over(0, Exit(143, 5000, SignalledBy::kTpd))}, true)), kPaused);
    const absl::Duration paused = w.now - w.step.entered_at;
    w.now += by;
    FoldClockSet(w.step, by);
    EXPECT_EQ(w.now - w.step.entered_at, paused);
  }
}

TEST(Sight, AClockThatIsSetIsNoTimeThatWasSeen) {
  World w;
  w.RunAll();
  const absl::Duration ran = w.step.ran;
  w.now += absl::Hours(5);
  FoldClockSet(w.step, absl::Hours(5));
  w.After(absl::Seconds(3), Seen({Up(0)}));
  EXPECT_EQ(w.step.ran, ran + absl::Seconds(3));
}

TEST(Sight, AClockThatIsSetConfirmsNoAbsence) {
  World w;
  w.RunAll();
  w.Do(Observed{Absent{}});
  w.now += absl::Hours(5);
  FoldClockSet(w.step, absl::Hours(5));
  w.Do(Observed{Absent{}});
  EXPECT_EQ(w.step.state, kRunning);
}

// However often it is looked at.
TEST(Sight, TimeThatCountsIsSavedEveryFewSeconds) {
  World w;
  w.RunAll();
  Step saved = w.step;
  for (int second = 1; second <= 100; ++second) {
    w.After(absl::Seconds(1), Seen({Up(0)}));
    if (w.last.durable) saved = w.step;
    ASSERT_LE(w.step.ran - saved.ran, absl::Seconds(10));
  }
  World waiting;
  waiting.Launch();
  saved = waiting.step;
  for (int second = 1; second <= 300; ++second) {
    waiting.After(absl::Seconds(1), Observed{Present{}});
    if (waiting.last.durable) saved = waiting.step;
    ASSERT_LE(waiting.step.attempt->sight.pending - saved.attempt->sight.pending, absl::Minutes(1));
  }
}

TEST(Sight, ARisingHeartbeatIsNotAbsent) {
  World w;
  w.RunAll();
  const auto gone = [](int64_t beats) {
    RankObservation rank = Rank(0, Tree::kUnknown, Start(0));
    rank.heartbeat = Heartbeat{beats, At(beats * 1000)};
    return Observed{Absent{Claim::kThisLaunch, {rank}}};
  };
  w.Do(gone(1));
  w.After(absl::Seconds(30), gone(2));
  w.After(absl::Seconds(30), gone(3));
  EXPECT_EQ(w.step.state, kRunning);
  EXPECT_FALSE(w.step.attempt->ending);
  w.After(absl::Seconds(30), gone(3));
  w.After(absl::Seconds(30), gone(3));
  EXPECT_TRUE(w.step.state == kQueued || w.step.state == kFailed);
}

// The runner died at some moment before tpd looked again; nobody saw it alive since.
TEST(Sight, AnEndWithoutRecordClosesWhereItWasLastSeenAlive) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  w.After(absl::Seconds(20), Seen({Up(0)}));
  w.After(absl::Hours(8), Seen({Rank(0, Tree::kGone, Start(0))}, true));
  EXPECT_EQ(w.step.state, kFailed);
  EXPECT_EQ(w.step.past.at(0).metered_ms, 20'000);
}

TEST(Sight, VerifyingAnAbsenceIsNotBilled) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  w.After(absl::Seconds(20), Seen({Up(0)}));
  w.After(absl::Seconds(10), Gone(Claim::kThisLaunch));
  w.After(absl::Seconds(10), Gone(Claim::kThisLaunch));
  EXPECT_EQ(w.step.state, kFailed);
  EXPECT_EQ(w.step.past.at(0).metered_ms, 20'000);
}

TEST(Sight, AHeartbeatLaterThanTheLastSightingCounts) {
  World w;
  w.policy.infrastructure_retries = 0;
  w.RunAll();
  RankObservation gone = Rank(0, Tree::kGone, Start(0));
  gone.heartbeat = Heartbeat{40, At(40'000)};
  w.After(absl::Hours(8), Seen({gone}, true));
  EXPECT_EQ(w.step.past.at(0).metered_ms, 40'000);
}

}  // namespace
}  // namespace tp::core::test
