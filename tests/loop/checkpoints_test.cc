// What people are told of checkpoints (core/checkpoint.h has the rules).
#include "harness.h"

namespace tp::loop::test {
namespace {

using enum core::JobState;

class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = h_.Submit();
    key_ = h_.sink.Last("launch").key;
    h_.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
    h_.Observe(key_, Harness::UpOrOver(1, std::nullopt));
    ASSERT_EQ(h_.State(run_), kRunning);
  }

  void See(int32_t attempt, bool after_end) {
    core::CheckpointSight sight;
    sight.attempt = attempt;
    sight.after_end = after_end;
    sight.newest = core::Checkpoint{"step-5.ckpt", h_.now};
    sight.looked_at = h_.now;
    h_.loop->Post(CheckpointsSeen{{{{run_, 0}, sight}}});
    h_.Settle();
  }

  void Pause() {
    ASSERT_TRUE(h_.Do(PauseRun{h_.store->GetRun(run_).value()}).ok());
    h_.Observe(key_, Harness::UpOrOver(1, 143));
    ASSERT_EQ(h_.State(run_), kPaused);
  }

  std::vector<std::string> Told() {
    std::vector<std::string> notes;
    const std::vector<store::EventRow> events = h_.store->Events(run_, 0, 100).value();
    for (const store::EventRow& row : events) {
      if (row.event == "checkpoint") notes.push_back(row.note);
    }
    return notes;
  }

  std::optional<core::CheckpointSight> Shown() {
    std::optional<core::CheckpointSight> shown;
    h_.loop->Post(Query{.runs = {run_}},
                  [&](const std::vector<LiveRun>& live) { shown = live.at(0).checkpoints.at(0); });
    h_.Settle();
    return shown;
  }

  Harness h_;
  int64_t run_ = 0;
  std::string key_;
};

TEST_F(Checkpoints, ARunThatRunsShowsItsNewest) {
  EXPECT_FALSE(Shown());
  See(1, false);
  ASSERT_TRUE(Shown());
  EXPECT_EQ(Shown()->newest->path, "step-5.ckpt");
  EXPECT_TRUE(Told().empty());
}

TEST_F(Checkpoints, APauseSaysOnceWhatItLost) {
  See(1, false);
  Pause();
  See(1, false);
  EXPECT_TRUE(Told().empty()) << "that look began before the end: what was saved last may be missing";
  See(1, true);
  See(1, true);
  ASSERT_EQ(Told().size(), 1U);
  EXPECT_NE(Told()[0].find("newest checkpoint step-5.ckpt"), std::string::npos) << Told()[0];
}

TEST_F(Checkpoints, ARestartDoesNotSayItAgain) {
  Pause();
  See(1, true);
  ASSERT_EQ(Told().size(), 1U);
  h_.Restart();
  h_.now += absl::Seconds(1);
  h_.Settle();
  See(1, true);
  EXPECT_TRUE(Shown());
  EXPECT_EQ(Told().size(), 1U);
}

TEST_F(Checkpoints, WhatWasSeenOfAnotherAttemptIsNothing) {
  See(7, false);
  EXPECT_FALSE(Shown());
}

TEST_F(Checkpoints, ARunThatIsOverIsForgotten) {
  See(1, false);
  h_.Observe(key_, Harness::UpOrOver(1, 0));
  ASSERT_EQ(h_.State(run_), kSucceeded);
  See(1, true);
  EXPECT_TRUE(Told().empty());
}

}  // namespace
}  // namespace tp::loop::test
