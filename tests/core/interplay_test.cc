// Stop, pause and resume against a fence under way, and against each other.
#include <gtest/gtest.h>

#include "world.h"

namespace tp::core::test {
namespace {

using enum JobState;

TEST(Interplay, APauseDuringAWithdrawalThatLapsesIsCarriedOut) {
  World w;
  w.step.spec.pending_timeout = absl::Minutes(5);
  w.Launch();
  w.After(absl::Minutes(5), Observed{Present{}});
  ASSERT_TRUE(w.step.attempt->ending);
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  w.Do(FenceAnswered{FenceLost{"nonce"}});
  ASSERT_TRUE(w.step.attempt->ending);
  EXPECT_EQ(w.step.attempt->ending->cause, EndCause::kPause);
  EXPECT_EQ(w.Signal(), StopLevel::kWarn);
  EXPECT_EQ(w.Do(Seen({Over(0, Exit(0, 5000, SignalledBy::kTpd))}, true)), kPaused);
}

TEST(Interplay, APauseThatWasLiftedBeforeItsSignalIsNotCarriedOut) {
  World w;
  w.Launch();
  w.Do(PauseRequested{Holder::kOwner, absl::Seconds(60)});
  w.Do(ResumeRequested{});
  w.Do(FenceAnswered{FenceLost{"nonce"}});
  EXPECT_FALSE(w.Signal());
  EXPECT_FALSE(w.step.attempt->ending);
  EXPECT_EQ(w.Do(Seen({Up(0)})), kRunning);
}

TEST(Interplay, OneTermForAStopWhoseFenceIsLostLater) {
  World w;
  w.step.spec.pending_timeout = absl::Minutes(5);
  w.Launch();
  w.After(absl::Minutes(5), Observed{Present{}});
  w.Do(Seen({Up(0)}));
  w.Do(StopRequested{});
  EXPECT_EQ(w.Signal(), StopLevel::kTerm);
  const auto escalate_at = w.step.attempt->ending->escalate_at;
  w.After(absl::Seconds(5), FenceAnswered{FenceLost{"nonce"}});
  EXPECT_FALSE(w.Signal());
  EXPECT_EQ(w.step.attempt->ending->escalate_at, escalate_at);
}

TEST(Interplay, AWindowsResumeSaysWhoStillHolds) {
  World w;
  w.Do(PauseRequested{Holder::kOwner, {}});
  w.Do(PauseRequested{Holder::kWindow, {}});
  EXPECT_EQ(w.Do(ResumeRequested{Holder::kWindow}), kPaused);
  EXPECT_NE(w.last.taken.at(0).note.find("owner"), std::string::npos) << w.last.taken.at(0).note;
}

TEST(Interplay, ALiveStateWithoutAnAttemptIsAFaultForEveryEvent) {
  World w;
  w.step.state = kRunning;
  for (const Event& event : std::vector<Event>{StopRequested{}, TimerFired{}, Nothing()}) {
    EXPECT_EQ(w.Try(event).status().code(), absl::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace tp::core::test
