#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "cli/render/time.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class QueueCommandTest : public CommandTest {
 protected:
  QueueCommandTest() {
    Add("", "", 16);
    Add("train-43", "alice", 8);
    v1::QueueEntry& pipeline = Add("sweep-44", "alice", 8);
    pipeline.set_step_name("eval");
    pipeline.clear_gate();
  }

  v1::QueueEntry& Add(const std::string& run, const std::string& owner, int64_t cards) {
    auto& queue = server_.script().queue;
    v1::QueueEntry& entry = queue.emplace_back();
    entry.set_position(static_cast<int32_t>(queue.size()));
    entry.set_run(run);
    entry.set_owner(owner);
    entry.set_step_name(run.empty() ? "" : "main");
    entry.set_shape(fmt::format("h200:{0} = {1} nodes x 8", cards, cards / 8));
    entry.set_cards(cards);
    entry.add_series("h200");
    entry.set_priority(50);
    entry.set_effective_priority(52);
    *entry.mutable_submitted_at() = ToProto(absl::Now() - absl::Hours(13));
    entry.mutable_gate()->set_gate(v1::GATE_CAPACITY);
    if (!run.empty()) entry.mutable_gate()->set_sentence("h200 needs 8 cards, 3 are free");
    entry.set_gate_count(run.empty() ? 1 : 2);
    return entry;
  }
};

TEST_F(QueueCommandTest, InOrderWithOthersAsSizes) {
  auto& queue = server_.script().queue;
  *queue[0].mutable_estimate()->mutable_starts_at() = ToProto(absl::Now() + absl::Minutes(130) + absl::Seconds(30));
  queue[1].mutable_estimate()->set_why_none("run-7 ahead has no time limit");
  *queue[2].mutable_estimate()->mutable_starts_at() = ToProto(absl::Now() - absl::Minutes(1));
  const Finished tp = Tp({"queue"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(
      tp.out,
      "POS  RUN            USER   PROFILE  PRIORITY  AGE  EST START   REASON\n"
      "  1  somebody's     -      h200:16        52  13h  in 2h10m    CAPACITY\n"
      "  2  train-43       alice  h200:8         52  13h  -           CAPACITY: h200 needs 8 cards, 3 are free (and 1 "
      "more)\n"
      "  3  sweep-44/eval  alice  h200:8         52  13h  any moment  about to launch\n");
  EXPECT_EQ(tp.err, "3 steps wait, for 32 cards\n");
  EXPECT_EQ(Tp({"queue", "-o", "name"}).out, "train-43\nsweep-44\n");
}

TEST_F(QueueCommandTest, OfOneSeriesAndSoMany) {
  const Finished tp = Tp({"queue", "--series", "h200", "-n", "2", "-o", "json"});
  EXPECT_EQ(server_.asked().queues.at(0).series(), "h200");
  EXPECT_EQ(server_.asked().queues.at(0).page_size(), 2);
  const json document = json::parse(tp.out);
  EXPECT_EQ(document["entries"].size(), 2U);
  EXPECT_EQ(document["total_count"], 3);
  EXPECT_EQ(document["total_cards"], 32);
  EXPECT_EQ(document["more"], true);
  EXPECT_EQ(document["entries"][0]["run"], "");
  EXPECT_EQ(tp.err, "3 steps wait, for 32 cards; 2 shown, -n 0 shows all\n");
}

TEST_F(QueueCommandTest, SaysHowFarOffEstimatesWere) {
  v1::EstimateErrors& so_far = server_.script().estimates_so_far;
  so_far.set_starts(41);
  *so_far.mutable_median_off() = ToProto(absl::Minutes(12));
  *so_far.mutable_bias() = ToProto(-absl::Minutes(11));
  EXPECT_EQ(Tp({"queue", "-n", "1"}).err,
            "3 steps wait, for 32 cards; starts are estimates, so far 12m off in the median of 41 starts, mostly "
            "earlier; 1 shown, -n 0 shows all\n");
  const json document = json::parse(Tp({"queue", "-o", "json"}).out);
  EXPECT_EQ(document["estimates_so_far"]["median_off"], "720s");
  EXPECT_EQ(document["estimates_so_far"]["bias"], "-660s");
}

TEST_F(QueueCommandTest, WalksThePages) {
  for (int n = 0; n < 450; ++n) Add("x-1", "alice", 8);
  const Finished tp = Tp({"queue", "-n", "0", "-o", "name"});
  EXPECT_EQ(std::count(tp.out.begin(), tp.out.end(), '\n'), 452);
  EXPECT_EQ(server_.asked().queues.size(), 3U);
}

TEST_F(QueueCommandTest, AnEmptyQueueSaysSo) {
  server_.script().queue.clear();
  const Finished tp = Tp({"queue"});
  EXPECT_EQ(tp.out + tp.err, "nothing waits\n");
  EXPECT_EQ(tp.exit_code, 0);
}

TEST_F(QueueCommandTest, AnUnknownSeriesIsNotFound) {
  server_.script().failures["ListQueue"] = {
      {grpc::StatusCode::NOT_FOUND, "there is no series 'h20'; did you mean h200?"}};
  const Finished tp = Tp({"queue", "--series", "h20"});
  EXPECT_EQ(tp.exit_code, 4);
  EXPECT_EQ(tp.err, "tp: there is no series 'h20'; did you mean h200?\n");
}

TEST_F(QueueCommandTest, WhatOthersWroteDoesNotReachTheTerminal) {
  server_.script().queue[1].mutable_gate()->set_sentence("\x1b]0;owned\x07\u202e\n");
  server_.script().queue[1].set_step_name("\x1b[2J");
  for (const char* format : {"table", "wide", "json", "yaml"}) {
    EXPECT_THAT(Tp({"queue", "-o", format}).out, Not(HasSubstr("\x1b"))) << format;
  }
}

TEST_F(QueueCommandTest, WhyTellsWhatIsAheadAndWhatWouldStart) {
  v1::Run run = MakeRun(43, "train", v1::RUN_STATE_QUEUED);
  v1::GateVerdict& gate = *run.mutable_steps(0)->add_gates();
  gate.set_gate(v1::GATE_CAPACITY);
  gate.set_sentence("h200 needs 16 cards, 8 are free");
  *gate.mutable_since() = ToProto(absl::Now() - absl::Minutes(5));
  server_.script().runs = {run};
  v1::StepExplanation& step = server_.script().explained.emplace_back();
  step.add_hints("h200:8 would start now");
  step.add_hints("fits if submitted before 19:40");
  step.set_position(3);
  step.set_queue_length(5);
  step.set_ahead_count(7);
  step.set_ahead_cards(64);
  *step.add_ahead() = server_.script().queue[0];
  *step.add_ahead() = server_.script().queue[2];
  EXPECT_EQ(Tp({"why", "train-43"}).out,
            "train-43  QUEUED\n"
            "  CAPACITY  h200 needs 16 cards, 8 are free (closed for 5m)\n"
            "  could start h200:8 would start now\n"
            "              fits if submitted before 19:40\n"
            "  position    3 of 5 that want the same cards\n"
            "  ahead       7 steps for 64 cards: somebody's h200:16, sweep-44/eval h200:8 (alice) and 5 more\n");
  const json document = json::parse(Tp({"why", "43", "-o", "json"}).out);
  EXPECT_EQ(document["steps"][0]["hints"][0], "h200:8 would start now");
  EXPECT_EQ(document["steps"][0]["ahead_count"], 7);
}

TEST_F(QueueCommandTest, WhySaysWhenItStartsAndThatThisIsAnEstimate) {
  server_.script().runs = {MakeRun(43, "train", v1::RUN_STATE_QUEUED)};
  v1::StepExplanation& step = server_.script().explained.emplace_back();
  v1::StartEstimate& estimate = *step.mutable_estimate();
  const absl::Time at = absl::Now() + absl::Minutes(130) + absl::Seconds(30);
  *estimate.mutable_starts_at() = ToProto(at);
  EXPECT_THAT(Tp({"why", "43"}).out, HasSubstr("  est. start  starts in about 2h10m, at " + Rfc3339(at) +
                                               " (estimate by time limits; none compared yet)\n"));
  v1::EstimateErrors& so_far = *estimate.mutable_so_far();
  so_far.set_starts(1);
  *so_far.mutable_median_off() = ToProto(absl::Minutes(12));
  *so_far.mutable_bias() = ToProto(absl::Minutes(12));
  EXPECT_THAT(Tp({"why", "43"}).out,
              HasSubstr("(estimate by time limits; so far 12m off in the median of 1 start, mostly later)\n"));
  const json document = json::parse(Tp({"why", "43", "-o", "json"}).out);
  EXPECT_EQ(document["steps"][0]["estimate"]["starts_at"], Rfc3339(at));
  estimate.Clear();
  estimate.set_why_none("a job ahead has no time limit");
  EXPECT_THAT(Tp({"why", "43"}).out, HasSubstr("  est. start  no estimate: a job ahead has no time limit\n"));
}

}  // namespace
}  // namespace tp::cli
