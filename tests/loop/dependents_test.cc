// Runs that come after other runs, arrays, and holds from the beginning, over the loop.
#include <algorithm>

#include <gmock/gmock.h>

#include "core/array.h"
#include "harness.h"

namespace tp::loop::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using enum core::JobState;

class DependentsTest : public testing::Test {
 protected:
  core::RunWithSteps Stored(int64_t run) { return h.store->GetRun(run).value(); }

  absl::StatusOr<Answer> SubmitAfter(int64_t other, core::AfterWhen when) {
    SubmitRun submit = Harness::Job();
    submit.after.push_back({.stored = Stored(other), .when = when});
    return h.Do(std::move(submit));
  }
  int64_t After(int64_t other, core::AfterWhen when = core::AfterWhen::kSuccess) {
    const auto answer = SubmitAfter(other, when);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->run : 0;
  }
  absl::StatusOr<Answer> Retry(int64_t run) {
    RetryRun retry{.stored = Stored(run)};
    for (const auto& dependency : retry.stored.run.after) retry.after.push_back(Stored(dependency.run));
    return h.Do(std::move(retry));
  }
  std::string KeyOf(int64_t run, int step = 0) {
    return core::AttemptKey({"test", 1}, {{run, step}, Stored(run).steps.at(static_cast<size_t>(step)).attempts});
  }
  void End(int64_t run, int code, int step = 0) { h.Observe(KeyOf(run, step), Harness::UpOrOver(1, code)); }

  std::string GateOf(int64_t run) {
    std::string sentence;
    h.loop->Post(Query{.runs = {run}}, [&](const std::vector<LiveRun>& live) {
      if (!live.empty() && !live[0].gates[0].empty()) sentence = live[0].gates[0][0].sentence;
    });
    h.Settle();
    return sentence;
  }

  Harness h;
};

TEST_F(DependentsTest, ARunWaitsForAnother) {
  const int64_t first = h.Submit();
  const int64_t second = After(first);
  EXPECT_EQ(h.State(second), kQueued);
  EXPECT_EQ(GateOf(second), "waits for train-1 to succeed");
  End(first, 0);
  EXPECT_EQ(h.State(first), kSucceeded);
  EXPECT_EQ(h.State(second), kSubmitted);
  EXPECT_EQ(Stored(second).run.after.at(0).outcome, core::RunWord::kSucceeded);
}

TEST_F(DependentsTest, ARestartForgetsNothing) {
  const int64_t first = h.Submit();
  const int64_t second = After(first);
  h.Restart();
  h.Settle();
  EXPECT_EQ(h.State(second), kQueued);
  End(first, 0);
  EXPECT_EQ(h.State(second), kSubmitted);
}

TEST_F(DependentsTest, WhatCanNeverRunStopsAndSoDoesWhatWaitsForThat) {
  const int64_t first = h.Submit();
  const int64_t second = After(first);
  const int64_t third = After(second);
  const int64_t on_failure = After(first, core::AfterWhen::kFailure);
  const int64_t always = After(first, core::AfterWhen::kAlways);
  End(first, 3);
  EXPECT_EQ(h.State(second), kStopped);
  EXPECT_EQ(Stored(second).steps[0].failure->sentence,
            "train-1 ended FAILED, so this run, which waited for it to succeed, can never run");
  EXPECT_EQ(h.State(third), kStopped);
  EXPECT_EQ(h.State(on_failure), kSubmitted);
  EXPECT_EQ(h.State(always), kSubmitted);
}

TEST_F(DependentsTest, ALongChainEndsWithoutADeepStack) {
  int64_t last = h.Submit();
  const int64_t first = last;
  for (int i = 0; i < 5000; ++i) last = After(last);
  End(first, 3);
  EXPECT_EQ(h.State(last), kStopped);
  EXPECT_THAT(h.loop->runs(), IsEmpty());
}

TEST_F(DependentsTest, WhatEndedAlreadyDecidesAtOnce) {
  const int64_t first = h.Submit();
  End(first, 3);
  const auto refused = SubmitAfter(first, core::AfterWhen::kSuccess);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--after train-1:always"));
  EXPECT_EQ(h.State(After(first, core::AfterWhen::kFailure)), kSubmitted);
}

TEST_F(DependentsTest, ARetryOfTheOtherMakesItWaitAgainUnlessItHasStarted) {
  SubmitRun held = Harness::Job();
  const int64_t first = h.Submit();
  held.hold = true;
  held.after.push_back({.stored = Stored(first), .when = core::AfterWhen::kFailure});
  const int64_t second = h.Do(std::move(held))->run;
  const int64_t started = After(first, core::AfterWhen::kFailure);
  End(first, 3);
  EXPECT_EQ(GateOf(second), "held by its owner: tp release lets it go");
  EXPECT_EQ(h.State(started), kSubmitted);
  ASSERT_TRUE(Retry(first).ok());
  EXPECT_EQ(GateOf(second), "waits for train-1 to fail");
  EXPECT_EQ(Stored(started).run.after.at(0).outcome, core::RunWord::kFailed);
}

TEST_F(DependentsTest, ARetryLooksAgainAtWhatItWaitedFor) {
  const int64_t first = h.Submit();
  const int64_t second = After(first);
  End(first, 3);
  ASSERT_EQ(h.State(second), kStopped);
  const auto too_early = Retry(second);
  EXPECT_EQ(too_early.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(too_early.status().message()), HasSubstr("retry that one first"));
  ASSERT_TRUE(Retry(first).ok());
  ASSERT_TRUE(Retry(second).ok());
  EXPECT_EQ(h.State(second), kQueued);
  EXPECT_EQ(GateOf(second), "waits for train-1 to succeed");
  End(first, 0);
  EXPECT_EQ(h.State(second), kSubmitted);
}

TEST_F(DependentsTest, WhatHasStartedIsNotStoppedByHowTheOtherEndsLater) {
  h.policy.user_retries = 1;
  h.policy.retry_cooldown = absl::Seconds(60);
  h.Restart();
  SubmitRun brittle = Harness::Job();
  brittle.steps[0].user_retries = 0;
  const int64_t first = h.Do(std::move(brittle))->run;
  const int64_t cleanup = After(first, core::AfterWhen::kFailure);
  End(first, 3);
  End(cleanup, 3);
  ASSERT_EQ(h.State(cleanup), kQueued) << "it cools down";
  ASSERT_TRUE(Retry(first).ok());
  End(first, 0);
  EXPECT_EQ(h.State(cleanup), kQueued);
  h.now += absl::Seconds(61);
  h.Settle();
  EXPECT_EQ(h.State(cleanup), kSubmitted);
  End(cleanup, 3);
  EXPECT_EQ(h.State(cleanup), kFailed);
  ASSERT_TRUE(Retry(cleanup).ok()) << "it has started once: what it came after has no say any more";
  EXPECT_EQ(h.State(cleanup), kSubmitted);
}

// Whoever keeps the queue by its events would not know of it otherwise.
TEST_F(DependentsTest, TheEventsSayWhenItWaitsForLess) {
  const int64_t first = h.Submit("h200:16");
  const int64_t second = After(first, core::AfterWhen::kAlways);
  h.Observe(KeyOf(first), Harness::UpOrOver(2, 3));
  std::vector<std::string> said;
  const auto rows = h.store->Events(second, 0, 100).value();
  for (const store::EventRow& row : rows) said.push_back(row.event + ": " + row.note);
  EXPECT_THAT(said, testing::Contains("dependency: train-1 ended FAILED"));
}

TEST_F(DependentsTest, ARetryThatIsRefusedLeavesNothingBehind) {
  const int64_t first = h.Submit();
  End(first, 0);
  const int64_t second = After(first);
  End(second, 0);
  EXPECT_EQ(h.State(second), kSucceeded);
  // Of the same turn, so that there is something to commit.
  h.loop->Post(Command{{"ada", store::Role::kUser}, "other", "Test", "sha", Harness::Job()}, [](const auto&) {});
  EXPECT_EQ(Retry(second).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(h.loop->runs(), SizeIs(1));
}

TEST_F(DependentsTest, HeldFromTheBeginning) {
  SubmitRun submit = Harness::Job();
  submit.hold = true;
  const int64_t run = h.Do(std::move(submit))->run;
  EXPECT_EQ(h.State(run), kQueued);
  EXPECT_EQ(GateOf(run), "held by its owner: tp release lets it go");
}

// --- Arrays -----------------------------------------------------------------------------------------

class ArrayTest : public DependentsTest {
 protected:
  int64_t Submit(const std::string& array) {
    SubmitRun submit = Harness::Job("h200:1");
    submit.array = core::ParseArray(array).value();
    const auto answer = h.Do(std::move(submit));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->run : 0;
  }
  int Count(int64_t run, core::JobState state) {
    const core::RunWithSteps stored = Stored(run);
    return static_cast<int>(std::count_if(stored.steps.begin(), stored.steps.end(),
                                          [&](const core::Step& step) { return step.state == state; }));
  }
};

TEST_F(ArrayTest, NeverMoreThanItsLimitAndTheLowestFirst) {
  const int64_t run = Submit("0-19%3");
  for (int task = 0; task < 20; ++task) {
    EXPECT_EQ(Count(run, kSubmitted), std::min(3, 20 - task));
    EXPECT_LE(core::LiveTasks(h.loop->runs().at(run)), 3);
    End(run, 0, task);
  }
  EXPECT_EQ(Count(run, kSucceeded), 20);
  EXPECT_THAT(h.loop->runs(), IsEmpty());
}

TEST_F(ArrayTest, ATaskThatCoolsDownLeavesItsPlaceToTheNext) {
  h.policy.user_retries = 1;
  h.policy.retry_cooldown = absl::Seconds(60);
  h.Restart();
  const int64_t run = Submit("0-4%2");
  End(run, 3, 0);
  EXPECT_EQ(Stored(run).steps[0].retry_count, 1);
  EXPECT_EQ(Stored(run).steps[2].state, kSubmitted);
  h.now += absl::Seconds(61);
  h.Settle();
  EXPECT_EQ(core::LiveTasks(h.loop->runs().at(run)), 2) << "its cooldown is over, its place is taken";
  End(run, 0, 2);
  EXPECT_EQ(Stored(run).steps[0].state, kSubmitted) << "the lowest first";
  EXPECT_EQ(Stored(run).steps[3].state, kQueued);
}

TEST_F(ArrayTest, ATaskThatFailsWhileItIsAnothersTurnIsLookedAtAfterItsCooldown) {
  h.policy.user_retries = 1;
  h.policy.retry_cooldown = absl::Seconds(60);
  h.Restart();
  const int64_t run = Submit("0-2%1");
  End(run, 3, 0);
  h.now += absl::Seconds(61);
  h.Settle();
  End(run, 3, 1);
  EXPECT_EQ(Stored(run).steps[0].state, kSubmitted) << "the lowest first";
  End(run, 0, 0);
  End(run, 0, 2);
  EXPECT_EQ(Stored(run).steps[1].state, kQueued);
  h.now += absl::Seconds(61);
  h.Settle();
  EXPECT_EQ(Stored(run).steps[1].state, kSubmitted);
}

TEST_F(ArrayTest, OneCommandStopsAll) {
  const int64_t run = Submit("0-99%4");
  ASSERT_TRUE(h.Do(StopRun{Stored(run)}).ok());
  EXPECT_EQ(Count(run, kStopped), 96);
  EXPECT_EQ(Count(run, kSubmitted), 4) << "until nothing of them is left";
}

TEST_F(ArrayTest, ARestartKeepsTheLimit) {
  const int64_t run = Submit("0-9%2");
  h.Restart();
  h.Settle();
  EXPECT_EQ(Count(run, kSubmitted), 2);
  End(run, 0, 1);
  EXPECT_EQ(Count(run, kSubmitted), 2);
}

TEST_F(ArrayTest, TasksSayWhatTheyWaitFor) {
  const int64_t run = Submit("0-999%2");
  std::vector<LiveRun> live;
  h.loop->Post(Query{.runs = {run}}, [&](std::vector<LiveRun> found) { live = std::move(found); });
  h.Settle();
  ASSERT_THAT(live, SizeIs(1));
  ASSERT_THAT(live[0].gates, SizeIs(1000));
  EXPECT_THAT(live[0].gates[0], IsEmpty()) << "it is live";
  for (size_t task : {2, 500, 999}) {
    ASSERT_FALSE(live[0].gates[task].empty());
    EXPECT_EQ(live[0].gates[task][0].sentence, "2 tasks of its array are under way, and 2 may be at once");
  }
}

TEST_F(ArrayTest, WithoutALimitAllStart) {
  const int64_t run = Submit("0-15");
  EXPECT_EQ(Count(run, kSubmitted), 16);
}

}  // namespace
}  // namespace tp::loop::test
