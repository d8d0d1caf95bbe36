// An event that cannot be applied holds its own job, and nobody else's (DESIGN 12).
#include <stdexcept>

#include "harness.h"

namespace tp::loop::test {
namespace {

using enum core::JobState;

// As long as it is true.
bool poison_acts = true;

// The product's table but for the first step of run 1, which throws on an event of this kind.
core::Table Poisoned(core::JobState from = kPending, core::EventKind on = core::EventKind::kObserved) {
  poison_acts = true;
  core::Table table = core::ProductTable();
  table.insert(table.begin(), core::Rule{{from},
                                         on,
                                         "it is run 1",
                                         [](const core::Change& c) { return poison_acts && c.step.ref.run == 1; },
                                         std::nullopt,
                                         "throws",
                                         [](core::Change&) { throw std::out_of_range("map::at"); }});
  return table;
}

TEST(Quarantine, WhatThrowsHoldsItsOwnJobAndIsLoggedOnce) {
  const core::Table table = Poisoned();
  Harness h;
  h.table = &table;
  h.Restart();
  const int64_t bad = h.Submit();
  const std::string bad_key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  const int64_t good = h.Submit();
  const std::string good_key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  const size_t before = h.store->Events(bad, 0, 100).value().size();
  for (int i = 0; i < 5; ++i) h.Observe(bad_key, Harness::UpOrOver(1, std::nullopt));
  h.Observe(good_key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(h.State(good), kSucceeded);
  EXPECT_EQ(h.State(bad), kPending);
  EXPECT_EQ(h.loop->counters().quarantined, 1);
  const auto events = h.store->Events(bad, 0, 100).value();
  ASSERT_EQ(events.size(), before + 1);
  EXPECT_EQ(events.back().event, "quarantined");
  EXPECT_NE(events.back().note.find("map::at"), std::string::npos) << events.back().note;
}

// A run of its own whose first sight is the poison.
struct Held {
  explicit Held(core::JobState from = kPending, core::EventKind on = core::EventKind::kObserved)
      : table(Poisoned(from, on)) {
    h.table = &table;
    h.Restart();
    run = h.Submit();
    key = h.sink.Last("launch").key;
    h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
    h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  }

  std::vector<core::GateVerdict> Gates() {
    std::vector<core::GateVerdict> gates;
    h.loop->Post(Query{{run}}, [&](const std::vector<LiveRun>& runs) { gates = runs.at(0).gates.at(0); });
    h.Settle();
    return gates;
  }

  absl::StatusOr<Answer> Release(const Principal& who) {
    UpdateRun update{.stored = h.store->GetRun(run).value(), .revision = {.hold = false}, .expected_version = ""};
    return h.Do(std::move(update), "", who);
  }

  const core::Table table;
  Harness h;
  int64_t run = 0;
  std::string key;
};

const Principal kOwner = {"ada", store::Role::kUser};
const Principal kAdmin = {"root", store::Role::kAdmin};

TEST(Quarantine, ShowsAsAGateWhateverTheState) {
  Held held;
  const auto gates = held.Gates();
  ASSERT_EQ(gates.size(), 1U);
  EXPECT_EQ(gates[0].gate, core::GateKind::kHeld);
  EXPECT_NE(gates[0].sentence.find("map::at"), std::string::npos) << gates[0].sentence;
  EXPECT_NE(gates[0].sentence.find("tp release"), std::string::npos) << gates[0].sentence;
}

TEST(Quarantine, AnOperatorsReleaseEndsIt) {
  Held held;
  poison_acts = false;
  held.h.Observe(held.key, Harness::UpOrOver(1, std::nullopt));
  EXPECT_EQ(held.h.State(held.run), kPending) << "nothing is followed meanwhile";
  ASSERT_TRUE(held.Release(kOwner).ok());
  held.h.Observe(held.key, Harness::UpOrOver(1, std::nullopt));
  EXPECT_EQ(held.h.State(held.run), kPending) << "not by its owner";
  const auto released = held.Release(kAdmin);
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(released->note, "out of quarantine");
  EXPECT_TRUE(held.Gates().empty());
  held.h.Observe(held.key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(held.h.State(held.run), kSucceeded);
}

TEST(Quarantine, ReleasedTooSoonItIsBack) {
  Held held;
  ASSERT_TRUE(held.Release(kAdmin).ok());
  EXPECT_TRUE(held.Gates().empty());
  held.h.Observe(held.key, Harness::UpOrOver(1, std::nullopt));
  EXPECT_EQ(held.Gates().size(), 1U);
}

TEST(Quarantine, ARestartTriesAgain) {
  Held held;
  held.h.Restart();
  held.h.Observe(held.key, Harness::UpOrOver(1, std::nullopt));
  EXPECT_EQ(held.h.loop->counters().quarantined, 1) << "it is as poisoned as before";
  EXPECT_EQ(held.h.State(held.run), kPending);
  held.h.table = &core::ProductTable();
  held.h.Restart();
  held.h.Observe(held.key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(held.h.State(held.run), kSucceeded);
}

TEST(Quarantine, AnAnswerThatCouldNotBeAppliedIsNotLost) {
  Held held(kSubmitted, core::EventKind::kLaunchAnswered);
  EXPECT_EQ(held.h.State(held.run), kSubmitted);
  EXPECT_EQ(held.h.store->Load().value().outbox.size(), 1U) << "the launch is still owed an answer";
  poison_acts = false;
  ASSERT_TRUE(held.Release(kAdmin).ok());
  EXPECT_TRUE(held.h.store->Load().value().outbox.empty());
  EXPECT_EQ(held.h.sink.Count("launch"), 1) << "and is never sent twice";
  held.h.Observe(held.key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(held.h.State(held.run), kSucceeded);
}

TEST(Quarantine, AUserCanStillStopIt) {
  Held held;
  ASSERT_TRUE(held.h.Do(StopRun{held.h.store->GetRun(held.run).value()}).ok());
  poison_acts = false;
  ASSERT_TRUE(held.Release(kAdmin).ok());
  held.h.Observe(held.key, Harness::UpOrOver(1, 143));
  EXPECT_EQ(held.h.State(held.run), kStopped);
}

TEST(Quarantine, ATimerOfWhichNothingComesIsNotDueForEver) {
  core::Table table = core::ProductTable();
  std::erase_if(table, [](const core::Rule& rule) { return rule.on == core::EventKind::kTimer; });
  Harness h;
  h.table = &table;
  h.Restart();
  const int64_t run = h.Submit();
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, std::nullopt));
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  h.now += absl::Minutes(1);
  h.Settle();
  EXPECT_FALSE(h.loop->NextTimer());
}

}  // namespace
}  // namespace tp::loop::test
