#include "core/checkpoint.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

RunningSpan Span(absl::Duration ran) { return {kStart, kStart + ran}; }

CheckpointSight Sight(std::optional<absl::Duration> written_after_start) {
  CheckpointSight sight;
  if (written_after_start) sight.newest = Checkpoint{"step-5.ckpt", kStart + *written_after_start};
  return sight;
}

TEST(Checkpoint, NamesOfTheFrameworks) {
  for (const char* path : {"step-000500.ckpt", "checkpoint-500/model.safetensors", "checkpoint-500/trainer_state.json",
                           "ckpts/epoch=3/data.bin", "model.PT", "iter_0000100/__0_0.distcp", "best.pth"}) {
    EXPECT_TRUE(IsCheckpointPath(path)) << path;
  }
  for (const char* path : {"", "log.txt", "events.out.tfevents.1", "metrics.jsonl", "step-5.ckpt.tmp", "a/.step-5.ckpt",
                           "checkpoint-5/model.safetensors.part", "script.py"}) {
    EXPECT_FALSE(IsCheckpointPath(path)) << path;
  }
}

TEST(Checkpoint, WorkAtRiskIsSinceTheNewestOrTheStart) {
  EXPECT_EQ(WorkAtRisk(Sight(absl::Minutes(50)), Span(absl::Hours(1))), absl::Minutes(10));
  EXPECT_EQ(WorkAtRisk(Sight(std::nullopt), Span(absl::Hours(1))), absl::Hours(1));
  EXPECT_EQ(WorkAtRisk(Sight(-absl::Hours(5)), Span(absl::Hours(1))), absl::Hours(1)) << "an earlier attempt's";
  EXPECT_EQ(WorkAtRisk(Sight(absl::Hours(2)), Span(absl::Hours(1))), absl::ZeroDuration()) << "clocks differ";
}

TEST(Checkpoint, APauseSaysWhatItLost) {
  EXPECT_EQ(LossSentence(Sight(absl::Minutes(59)), Span(absl::Hours(1))),
            "newest checkpoint step-5.ckpt: 1m of work is done again");
  EXPECT_EQ(LossSentence(Sight(std::nullopt), Span(absl::Minutes(80))),
            "no checkpoint beneath $TP_OUTPUT_DIR: 1h20m of work is done again");
  EXPECT_EQ(LossSentence(Sight(-absl::Minutes(1)), Span(absl::Seconds(90))),
            "no checkpoint since it started, the newest is step-5.ckpt: 1m30s of work is done again");
}

TEST(Checkpoint, AWindowWarnsWhenItIsNearAndTheWorkIsOld) {
  const RunningSpan span = Span(absl::Hours(2));
  const auto warned = [&](std::optional<absl::Duration> written, absl::Duration left) {
    return !WindowWarning(Sight(written), span, span.until + left).empty();
  };
  EXPECT_TRUE(warned(std::nullopt, absl::Minutes(20)));
  EXPECT_TRUE(warned(absl::Minutes(80), absl::Minutes(20)));
  EXPECT_FALSE(warned(absl::Minutes(110), absl::Minutes(20)));
  EXPECT_FALSE(warned(std::nullopt, absl::Minutes(31)));
  EXPECT_FALSE(warned(std::nullopt, absl::InfiniteDuration()));
}

TEST(Checkpoint, TheSpanIsThatOfTheNewestAttempt) {
  Step step;
  EXPECT_FALSE(SpanOf(step, kStart));
  PastAttempt& last = step.past.emplace_back();
  last.ended_at = kStart + absl::Minutes(3);
  last.metered_ms = 60'000;
  const auto past = SpanOf(step, kStart + absl::Hours(9));
  ASSERT_TRUE(past);
  EXPECT_EQ(past->until - past->from, absl::Minutes(1));
  step.attempt.emplace();
  EXPECT_FALSE(SpanOf(step, kStart)) << "it does not run yet";
  step.attempt->meter.emplace().seen_at = kStart;
  EXPECT_EQ(SpanOf(step, kStart + absl::Hours(1))->until, kStart + absl::Hours(1));
}

}  // namespace
}  // namespace tp::core
