// The simulator itself: a seed is one history, on every machine and however often it is run.
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include "sim/command_line.h"
#include "sim/rng.h"
#include "sim/step_simulation.h"
#include "sim/timeline.h"

namespace tp::sim {
namespace {

TEST(Rng, IsTheSameEverywhere) {
  Rng rng(1);
  EXPECT_EQ(rng.Next(), 0xb3f2af6d0fc710c5U);
  EXPECT_EQ(rng.Next(), 0x853b559647364ceaU);
  Rng again(1);
  for (int i = 0; i < 1000; ++i) {
    const int64_t drawn = again.Draw({5, 900});
    EXPECT_GE(drawn, 5);
    EXPECT_LE(drawn, 900);
  }
}

TEST(Timeline, RunsByTimeAndThenByOrder) {
  Timeline timeline(100);
  std::string seen;
  timeline.At(300, [&] { seen += 'c'; });
  timeline.At(200, [&] { seen += 'a'; });
  timeline.At(200, [&] { seen += 'b'; });
  timeline.At(1, [&] { seen += '0'; });  // the past is now
  while (timeline.Step()) {
  }
  EXPECT_EQ(seen, "0abc");
  EXPECT_EQ(timeline.now_us(), 300);
  EXPECT_EQ(timeline.executed(), 4);
}

TEST(Simulation, ASeedIsOneHistory) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const SimulationResult once = Simulate({seed, 500, false, {}});
    const SimulationResult again = Simulate({seed, 500, false, {}});
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    EXPECT_GE(once.events, 500);
    hashes.insert(once.hash);
    EXPECT_EQ(SimulateStep({seed, 500, false, {}}).hash, SimulateStep({seed, 500, false, {}}).hash);
  }
  EXPECT_EQ(hashes.size(), 25U);
}

TEST(Simulation, SaysHowAFailureIsReplayed) {
  Defects defects;
  defects.effects_before_commit = true;
  const SimulationResult failed = Simulate({1, 500, false, defects});
  ASSERT_FALSE(failed.broken.empty());
  ASSERT_FALSE(failed.last_lines.empty());
  EXPECT_LE(failed.last_lines.size(), 200U);
}

TEST(CommandLine, SaysWhatIsWrong) {
  EXPECT_EQ(RunCommandLine({}), 2);
  EXPECT_EQ(RunCommandLine({"--seed"}), 2);
  EXPECT_EQ(RunCommandLine({"--seed", "x"}), 2);
  EXPECT_EQ(RunCommandLine({"--seeds", "2-1"}), 2);
  EXPECT_EQ(RunCommandLine({"--seed", "1", "--seeds", "1-2"}), 2);
  EXPECT_EQ(RunCommandLine({"--seeds", "1-2", "--simulator", "other"}), 2);
  EXPECT_EQ(RunCommandLine({"--seeds", "1-2", "--events", "200"}), 0);
}

}  // namespace
}  // namespace tp::sim
