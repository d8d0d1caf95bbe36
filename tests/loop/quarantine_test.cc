// An event that cannot be applied holds its own job, and nobody else's (DESIGN 12).
#include <stdexcept>

#include "harness.h"

namespace tp::loop::test {
namespace {

using enum core::JobState;

// The product's table but for the first step of run 1, which throws on whatever is observed of it.
core::Table Poisoned() {
  core::Table table = core::ProductTable();
  table.insert(table.begin(), core::Rule{{core::JobState::kPending},
                                         core::EventKind::kObserved,
                                         "it is run 1",
                                         [](const core::Change& c) { return c.step.ref.run == 1; },
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
  EXPECT_EQ(h.loop->counters().quarantined, 5);
  const auto events = h.store->Events(bad, 0, 100).value();
  ASSERT_EQ(events.size(), before + 1);
  EXPECT_EQ(events.back().event, "quarantined");
  EXPECT_NE(events.back().note.find("map::at"), std::string::npos) << events.back().note;
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
