// What hours without an answer may not do: pile up, fill the log, end what nobody could see.
#include "harness.h"

namespace tp::loop::test {
namespace {

// Brings a run's only step to RUNNING on the sink's last launch.
std::string RunIt(Harness& h) {
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  return key;
}

TEST(Outage, KillsThatNobodyAnswersDoNotPileUp) {
  Harness h;
  const int64_t run = h.Submit();
  RunIt(h);
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  for (int i = 0; i < 100; ++i) {
    h.now += absl::Seconds(30);
    h.Settle();
  }
  EXPECT_EQ(h.store->Load().value().outbox.size(), 2u);  // one TERM, one KILL
  EXPECT_EQ(h.sink.Count("signal"), 2);
  h.Answer_(absl::OkStatus(), "signal");
  h.now += absl::Seconds(30);
  h.Settle();
  EXPECT_EQ(h.sink.Count("signal"), 3);  // delivered, and still not gone: once more
}

// What waits for a moment goes on waiting as long as it had to, whichever way the clock is set.
TEST(Outage, AClockThatIsSetBackShortensNoBackoff) {
  Harness h;
  const int64_t run = h.Submit();
  h.Answer_(LaunchResult{LaunchRefused{"the node is busy"}}, "launch");
  h.Answer_(FenceResult{FenceWon{}}, "fence");
  h.Observe(h.sink.Last("remove").key, Absent{});
  h.now += absl::Seconds(6);
  h.Observe(h.sink.Last("remove").key, Absent{});
  ASSERT_EQ(h.State(run), core::JobState::kQueued);
  ASSERT_EQ(h.sink.Count("launch"), 1);
  h.now -= absl::Hours(1);
  h.loop->ClockSet(-absl::Hours(1));
  h.Settle();
  EXPECT_EQ(h.sink.Count("launch"), 1);
  h.now += absl::Seconds(2);
  h.Settle();
  EXPECT_EQ(h.sink.Count("launch"), 2);
}

TEST(Outage, AFenceThatKeepsFailingIsLoggedOnce) {
  Harness h;
  const int64_t run = h.Submit();
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  const size_t before = h.store->Events(run, 0, 1000).value().size();
  for (int i = 0; i < 20; ++i) {
    h.Answer_(FenceResult{FenceFailed{"EIO"}}, "fence");
    h.now += absl::Seconds(5);
    h.Settle();
  }
  EXPECT_EQ(h.store->Events(run, 0, 1000).value().size(), before + 1);
}

TEST(Outage, TimeWithTpdDownIsNoPartOfTheStartTimeout) {
  Harness h;
  h.Submit();
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  Present granted;
  granted.cards_granted = true;
  h.Observe(key, granted);
  h.now += absl::Hours(1);
  h.Restart();
  h.Observe(key, granted);
  EXPECT_EQ(h.sink.Count("fence"), 0);
  h.now += absl::Minutes(10);
  h.Observe(key, granted);
  EXPECT_EQ(h.sink.Count("fence"), 1);
}

}  // namespace
}  // namespace tp::loop::test
