// `--array`: what it may say, and whose turn it is.
#include "core/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "core/gates.h"

namespace tp::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(ParseArray, RangesListsStridesAndLimits) {
  EXPECT_THAT(ParseArray("0-3")->indices, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ParseArray("7")->indices, ElementsAre(7));
  EXPECT_THAT(ParseArray("8-10,1,3,9")->indices, ElementsAre(1, 3, 8, 9, 10));
  EXPECT_THAT(ParseArray("0-30:10")->indices, ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(ParseArray("0-31")->limit, 0);
  EXPECT_EQ(ParseArray("0-31%4")->limit, 4);
  EXPECT_THAT(ParseArray("0-999%16")->indices, SizeIs(1000));
}

TEST(ParseArray, WhatItCannotBe) {
  for (const char* text : {"", "%4", "a", "1-", "-3", "3-1", "1,,2", "0-3:0", "5:2", "0-3%0", "0-3%", "0-3%4%5", "0x4",
                           " 1", "1 ", "+1", "0-1000001", "99999999999999999999", "0-3%1001"}) {
    const auto array = ParseArray(text);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Message(array.status()), HasSubstr("write 0-31, 1,3,8-10 or 0-30:10")) << text;
  }
  EXPECT_THAT(Message(ParseArray("0-1000").status()), HasSubstr("it has at most 1000 tasks"));
}

// A letter a task: q queued, h held, c cooling down, R live, + over.
RunWithSteps Array(std::string_view states, int32_t limit) {
  RunWithSteps run;
  run.run.n = 1;
  run.run.array_limit = limit;
  for (const char letter : states) {
    Step& step = run.steps.emplace_back();
    step.ref = {1, static_cast<int32_t>(run.steps.size()) - 1};
    step.spec.array_index = step.ref.step;
    if (letter == 'h') step.hold.owner = true;
    if (letter == 'c') step.cooldown_until = kNow + absl::Seconds(1);
    if (letter == '+') step.state = JobState::kSucceeded;
    if (letter != 'R') continue;
    step.state = JobState::kRunning;
    step.attempt = Attempt();
  }
  return run;
}

std::vector<int32_t> Due(const RunWithSteps& run) {
  std::vector<int32_t> due;
  for (const Step& step : run.steps) {
    const bool waits = step.state == JobState::kQueued && !step.hold.owner && !step.cooldown_until;
    if (waits && TaskIsDue(run, step, kNow)) due.push_back(step.ref.step);
  }
  return due;
}

TEST(TaskIsDue, AsManyAsTheLimitLeavesTheLowestFirst) {
  EXPECT_THAT(Due(Array("qqqqq", 2)), ElementsAre(0, 1));
  EXPECT_THAT(Due(Array("+qRqq", 2)), ElementsAre(1));
  EXPECT_THAT(Due(Array("RRqq", 2)), IsEmpty());
  EXPECT_THAT(Due(Array("RRRqq", 2)), IsEmpty()) << "more are live than may be, as after a restart with fewer";
  EXPECT_THAT(Due(Array("hcqqq", 2)), ElementsAre(2, 3)) << "what waits for something else takes no turn";
  EXPECT_THAT(Due(Array("qqq", 0)), ElementsAre(0, 1, 2));
}

TEST(TaskIsDue, AStepOfNoArrayIs) {
  RunWithSteps run = Array("q", 0);
  run.steps[0].spec.array_index.reset();
  EXPECT_TRUE(TaskIsDue(run, run.steps[0], kNow));
  EXPECT_FALSE(IsArray(run));
}

// Whatever one task does, the turns that change are at the edge.
TEST(TasksAtTheEdge, AreAllWhoseTurnChanged) {
  const std::string letters = "qhcR+";
  for (int32_t limit = 1; limit <= 4; ++limit) {
    for (int code = 0; code < 5 * 5 * 5 * 5 * 5; ++code) {
      std::string before;
      for (int rest = code, i = 0; i < 5; ++i, rest /= 5) before += letters[static_cast<size_t>(rest % 5)];
      if (std::count(before.begin(), before.end(), 'R') > limit) continue;
      for (size_t changed = 0; changed < before.size(); ++changed) {
        for (const char to : letters) {
          std::string after = before;
          after[changed] = to;
          if (std::count(after.begin(), after.end(), 'R') > limit) continue;
          const RunWithSteps was = Array(before, limit);
          const RunWithSteps is = Array(after, limit);
          const std::vector<int32_t> edge = TasksAtTheEdge(is, kNow);
          for (size_t i = 0; i < before.size(); ++i) {
            if (i == changed || before[i] != 'q') continue;
            const bool turned = TaskIsDue(was, was.steps[i], kNow) != TaskIsDue(is, is.steps[i], kNow);
            if (!turned) continue;
            EXPECT_NE(std::find(edge.begin(), edge.end(), static_cast<int32_t>(i)), edge.end())
                << before << " to " << after << ", limit " << limit << ", task " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tp::core
