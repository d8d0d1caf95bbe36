// DESIGN 8: the one word of a run.
#include <gtest/gtest.h>

#include "core/run.h"

namespace tp::core {
namespace {

using enum JobState;

Step Make(int32_t index, JobState state, std::optional<After> after = std::nullopt) {
  Step step;
  step.ref = {1, index};
  step.state = state;
  step.spec.after = after;
  return step;
}

RunWord Two(JobState first, JobState second, AfterWhen when = AfterWhen::kSuccess) {
  return RollUp({Make(0, first), Make(1, second, After{0, when})});
}

TEST(RollUp, OneStepIsItsState) {
  for (int state = 0; state < kJobStateCount; ++state) {
    const auto as_state = static_cast<JobState>(state);
    EXPECT_EQ(Name(RollUp({Make(0, as_state)})), Name(as_state));
  }
}

TEST(RollUp, AWaitingStepIsIgnoredWhileAnotherIsLiveOrPaused) {
  EXPECT_EQ(Two(kRunning, kQueued), RunWord::kRunning);
  EXPECT_EQ(Two(kPending, kQueued), RunWord::kPending);
  EXPECT_EQ(Two(kPaused, kQueued), RunWord::kPaused);
  EXPECT_EQ(Two(kSucceeded, kQueued), RunWord::kQueued);
  EXPECT_EQ(Two(kSucceeded, kRunning), RunWord::kRunning);
}

TEST(RollUp, PartialMeansTrainingWorkedAndTheRestDidNot) {
  EXPECT_EQ(Two(kSucceeded, kSucceeded), RunWord::kSucceeded);
  EXPECT_EQ(Two(kSucceeded, kFailed), RunWord::kPartial);
  EXPECT_EQ(Two(kSucceeded, kStopped), RunWord::kPartial);
  EXPECT_EQ(Two(kFailed, kStopped), RunWord::kFailed);
  EXPECT_EQ(Two(kStopped, kStopped), RunWord::kStopped);
}

TEST(RollUp, ACleanupStepCannotImproveTheWord) {
  EXPECT_EQ(Two(kFailed, kSucceeded, AfterWhen::kFailure), RunWord::kFailed);
  EXPECT_EQ(Two(kFailed, kSucceeded, AfterWhen::kAlways), RunWord::kFailed);
  Step unneeded = Make(1, kStopped, After{0, AfterWhen::kFailure});
  unneeded.failure = Failure{FailureKind::kDependency, "not needed"};
  EXPECT_EQ(RollUp({Make(0, kSucceeded), unneeded}), RunWord::kSucceeded);
}

TEST(RollUp, Words) {
  for (int word = 0; word < kRunWordCount; ++word) {
    const auto as_word = static_cast<RunWord>(word);
    EXPECT_EQ(ParseRunWord(Name(as_word)), as_word);
    EXPECT_EQ(IsTerminal(as_word), word >= static_cast<int>(RunWord::kSucceeded));
  }
  EXPECT_FALSE(ParseRunWord("DONE"));
}

}  // namespace
}  // namespace tp::core
