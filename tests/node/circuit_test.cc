#include "backends/node/circuit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::node {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TEST(Circuit, IsClosedUntilTheFirstFailure) {
  Circuit circuit;
  EXPECT_TRUE(circuit.closed());
  circuit.Succeeded(kNow);
  EXPECT_TRUE(circuit.closed());
  EXPECT_EQ(circuit.since(), kNow);
  circuit.Failed(kNow + absl::Seconds(1), "does not answer: gone", 0.5);
  EXPECT_FALSE(circuit.closed());
  EXPECT_EQ(circuit.since(), kNow + absl::Seconds(1));
}

TEST(Circuit, ProbesComeEverMoreSeldomAndWithJitter) {
  Circuit circuit;
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    circuit.Failed(kNow, "is away", 0.5);
    const absl::Duration pause = circuit.pause();
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, absl::Seconds(15));
    last = pause;
  }
  EXPECT_EQ(last, absl::Seconds(15));
  Circuit early;
  Circuit late;
  early.Failed(kNow, "is away", 0);
  late.Failed(kNow, "is away", 1);
  EXPECT_EQ(early.pause(), absl::Milliseconds(750));
  EXPECT_EQ(late.pause(), absl::Milliseconds(1250));
}

TEST(Circuit, ASuccessClosesItAndTheNextFailureBeginsAnew) {
  Circuit circuit;
  for (int i = 0; i < 5; ++i) circuit.Failed(kNow, "is away", 0.5);
  circuit.Succeeded(kNow + absl::Minutes(1));
  EXPECT_TRUE(circuit.closed());
  circuit.Failed(kNow + absl::Minutes(2), "is away", 0.5);
  EXPECT_EQ(circuit.pause(), absl::Seconds(1));
}

TEST(Circuit, TheSentenceNamesTheHostSinceWhenAndWhy) {
  Circuit circuit;
  circuit.Failed(kNow, "does not answer: connection timed out", 0.5);
  EXPECT_EQ(circuit.Sentence("node3", kNow + absl::Seconds(30)), "node3 does not answer: connection timed out");
  EXPECT_EQ(circuit.Sentence("node3", kNow + absl::Minutes(3)), "node3 does not answer for 3m: connection timed out");
  EXPECT_EQ(circuit.Sentence("node3", kNow + absl::Hours(5)), "node3 does not answer for 5h: connection timed out");
  EXPECT_EQ(circuit.Sentence("node3", kNow + absl::Hours(72)),
            "node3 does not answer for 3 days: connection timed out");
}

}  // namespace
}  // namespace tp::node
