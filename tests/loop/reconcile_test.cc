// Orphans are ended by the loop's ordinary effects.
#include "harness.h"

namespace tp::loop::test {
namespace {

const Principal kSweeper = {"root", store::Role::kAdmin};

SweepOrphans SweepOf(const std::string& key) {
  return {.orphans = {{"local", {.key = key, .nonce = "n", .attempt_dir = "/data/x", .ranks_per_pool = {1}}}}};
}

TEST(Sweep, AnOrphanIsFencedKilledAndRemoved) {
  Harness h;
  const auto answer = h.Do(SweepOf("tp-test-e1-99-s0-a1"), "", kSweeper);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->note, "1 orphan is being ended");
  EXPECT_EQ(h.sink.Count("fence"), 1);
  EXPECT_EQ(h.sink.Last("signal").level, StopLevel::kKill);
  EXPECT_EQ(h.sink.Last("remove").key, "tp-test-e1-99-s0-a1");
  EXPECT_EQ(h.sink.Last("look").key, "tp-test-e1-99-s0-a1");
  h.Answer_(FenceResult{FenceLost{"n"}}, "fence");
  h.Answer_(absl::OkStatus(), "signal");
  h.Answer_(absl::OkStatus(), "remove");
  EXPECT_TRUE(h.store->Load().value().outbox.empty());
}

TEST(Sweep, WhatFailsIsTriedAgainAndNotForEver) {
  Harness h;
  ASSERT_TRUE(h.Do(SweepOf("tp-test-e1-99-s0-a1"), "", kSweeper).ok());
  h.Answer_(absl::OkStatus(), "remove");  // whatever is answered first
  for (int i = 0; i < 30; ++i) {
    h.Answer_(FenceResult{FenceFailed{"EIO"}}, "fence");
    h.Answer_(absl::UnavailableError("the storage hangs"), "signal");
    h.now += absl::Minutes(2);
    h.Settle();
  }
  EXPECT_GT(h.sink.Count("fence"), 10);
  EXPECT_LT(h.sink.Count("fence"), 30);
  EXPECT_GT(h.sink.Count("signal"), 10);
  EXPECT_TRUE(h.store->Load().value().outbox.empty());
}

TEST(Sweep, AnotherSweepOfTheSameAsksForNothingTwice) {
  Harness h;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(h.Do(SweepOf("tp-test-e1-99-s0-a1"), "", kSweeper).ok());
  EXPECT_EQ(h.sink.Count("fence"), 1);
  EXPECT_EQ(h.sink.Count("remove"), 1);
}

TEST(Sweep, WhatIsOwedOutlivesTpd) {
  Harness h;
  ASSERT_TRUE(h.Do(SweepOf("tp-test-e1-99-s0-a1"), "", kSweeper).ok());
  h.Restart();
  EXPECT_EQ(h.sink.Count("fence"), 2);
  EXPECT_EQ(h.sink.Count("signal"), 2);
  EXPECT_EQ(h.sink.Count("remove"), 2);
}

TEST(Sweep, NothingLiveAndNothingOfOthersIsTouched) {
  Harness h;
  h.Submit();
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  for (const std::string& key : {h.sink.Last("launch").key, std::string("tp-other-e1-99-s0-a1"),
                                 std::string("tp-test-e2-99-s0-a1"), std::string("nothing")}) {
    const auto answer = h.Do(SweepOf(key), "", kSweeper);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->note, "0 orphans are being ended") << key;
  }
  EXPECT_EQ(h.sink.Count("fence") + h.sink.Count("signal") + h.sink.Count("remove"), 0);
}

TEST(Sweep, IsForAdmins) {
  Harness h;
  const auto answer = h.Do(SweepOf("tp-test-e1-99-s0-a1"), "", {"olga", store::Role::kOperator});
  EXPECT_TRUE(absl::IsPermissionDenied(answer.status())) << answer.status();
}

}  // namespace
}  // namespace tp::loop::test
