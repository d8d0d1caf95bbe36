// What looks at cards come to: marks, names of ends, cards of strangers, jobs that compute nothing.
#include <gmock/gmock.h>

#include "harness.h"

namespace tp::loop::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Cards {
  Cards() {
    h.virtual_cards = false;
    h.Restart();
  }

  // All cards of both nodes as they are, seen in a look that began just now.
  CardsSeen Seen(std::vector<core::CardFault> faults = {}, int utilization = 50) const {
    CardsSeen seen{.backend = "local", .began = h.now, .cards = {}, .faults = std::move(faults)};
    for (const char* node : {"n1", "n2"}) {
      for (int card = 0; card < 8; ++card) {
        seen.cards.push_back({.node = node, .card = card, .utilization_percent = utilization});
      }
    }
    return seen;
  }
  void Look(std::vector<core::CardFault> faults = {}, int utilization = 50) {
    Take(Seen(std::move(faults), utilization));
  }
  void Take(CardsSeen seen) {
    h.loop->Post(std::move(seen));
    h.Settle();
  }

  std::string Launch() {
    run = h.Submit();
    h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
    return h.store->GetRun(run).value().steps.at(0).attempt->key;
  }
  std::string Run() {
    const std::string key = Launch();
    h.Observe(key, Harness::UpOrOver(1, std::nullopt));
    EXPECT_EQ(h.State(run), core::JobState::kRunning);
    return key;
  }
  core::Step Step() { return h.store->GetRun(run).value().steps.at(0); }
  std::string Kind() {
    const core::Step step = Step();
    if (step.past.empty() || !step.past.back().failure) return "";
    return std::string(core::Name(step.past.back().failure->kind));
  }
  NodesAnswer Nodes() {
    NodesAnswer nodes;
    h.loop->Post(NodesQuery(), [&](absl::StatusOr<NodesAnswer> answer) { nodes = *std::move(answer); });
    h.Settle();
    return nodes;
  }
  LiveRun Live() {
    std::vector<LiveRun> found;
    h.loop->Post(Query{{run}, false}, [&](std::vector<LiveRun> live) { found = std::move(live); });
    h.Settle();
    return found.at(0);
  }

  Harness h;
  int64_t run = 0;
};

const core::CardFault kFault = {.node = "n1", .card = 3, .why = "Xid 79: fallen off the bus"};

TEST(Cards, ABrokenCardIsTakenOutOnce) {
  Cards c;
  for (int i = 0; i < 3; ++i) c.Look({kFault});
  ASSERT_THAT(c.Nodes().marks, SizeIs(1));
  EXPECT_EQ(core::DescribeMark(c.Nodes().marks[0]), "drained by tpd: Xid 79: fallen off the bus");
}

TEST(Cards, ALookThatBeganBeforeACardWasPutBackSaysNothingOfIt) {
  Cards c;
  c.Look({kFault});
  c.h.now += absl::Seconds(1);
  CardsSeen late = c.Seen({kFault, {.node = "n1", .card = 4, .why = "Xid 48"}});
  c.h.now += absl::Seconds(1);
  ASSERT_TRUE(c.h.Do(ClearNode{{.node = "n1", .card = 3}}, "", {"root", store::Role::kAdmin}).ok());
  const std::string key = c.Run();
  c.Take(std::move(late));
  ASSERT_THAT(c.Nodes().marks, SizeIs(1));
  EXPECT_EQ(c.Nodes().marks[0].part.card, 4);
  EXPECT_THAT(c.Step().attempt->sight.card_faults, SizeIs(1));
}

TEST(Cards, WhatBrokeWhileAnAdminHadItOutIsTakenOutOnceItIsBack) {
  Cards c;
  const Principal admin{"root", store::Role::kAdmin};
  ASSERT_TRUE(c.h.Do(MarkNode{{.node = "n1", .card = 3}, core::MarkKind::kDrained, "cables"}, "", admin).ok());
  CardsSeen broken = c.Seen({kFault});
  broken.cards[3].broken = kFault.why;
  c.Take(broken);
  broken.faults.clear();
  c.Take(broken);
  ASSERT_THAT(c.Nodes().marks, SizeIs(1));
  EXPECT_EQ(c.Nodes().marks[0].reason, "cables");
  c.h.now += absl::Seconds(1);
  ASSERT_TRUE(c.h.Do(ClearNode{{.node = "n1", .card = 3}}, "", admin).ok());
  c.h.now += absl::Seconds(1);
  broken.began = c.h.now;
  c.Take(broken);
  ASSERT_THAT(c.Nodes().marks, SizeIs(1));
  EXPECT_EQ(c.Nodes().marks[0].reason, kFault.why);
}

TEST(Cards, AJobThatHasNotBegunForgetsWhatAnAdminHasSeenTo) {
  Cards c;
  c.Launch();
  c.Look({kFault});
  ASSERT_THAT(c.Step().attempt->sight.card_faults, SizeIs(1));
  ASSERT_TRUE(c.h.Do(ClearNode{{.node = "n1", .card = 3}}, "", {"root", store::Role::kAdmin}).ok());
  EXPECT_THAT(c.Step().attempt->sight.card_faults, IsEmpty());
}

TEST(Cards, AFailureOnABrokenCardIsRetriedElsewhere) {
  Cards c;
  const std::string key = c.Run();
  c.Look({kFault});
  EXPECT_EQ(c.h.State(c.run), core::JobState::kRunning) << "it goes on as long as it can";
  c.h.Restart();
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.Kind(), "gpu_lost") << "kept with the attempt";
  EXPECT_EQ(c.Step().past.back().failure->sentence,
            "card 3 of n1 broke under it (Xid 79: fallen off the bus) and it ended with exit 1: the card is out of "
            "service until an admin has seen to it; retry continues from the newest checkpoint on other cards");
  EXPECT_EQ(c.h.State(c.run), core::JobState::kQueued);
  EXPECT_EQ(c.Step().avoid_node, "n1");
  EXPECT_EQ(c.Step().infrastructure_retries_used, 1);
  ASSERT_THAT(c.Nodes().strikes, SizeIs(1));
  EXPECT_EQ(c.Nodes().strikes[0].node, "n1");
  c.h.now += absl::Minutes(2);
  c.h.Settle();
  ASSERT_TRUE(c.Step().attempt);
  EXPECT_EQ(c.Step().attempt->placement.at(0).ranks.at(0).node, "n2");
}

TEST(Cards, ASuccessOnABrokenCardIsASuccess) {
  Cards c;
  const std::string key = c.Run();
  c.Look({kFault});
  c.h.Observe(key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(c.h.State(c.run), core::JobState::kSucceeded);
}

TEST(Cards, ACardOfOthersNamesNothing) {
  Cards c;
  const std::string key = c.Run();
  c.Look({{.node = "n2", .card = 0, .why = "Xid 79"}});
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  c.Look();
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.Kind(), "user_exit");
}

TEST(Cards, AnEndAsksForALookAndWaitsForIt) {
  Cards c;
  const std::string key = c.Run();
  c.Look();
  c.h.now += absl::Seconds(5);
  CardsSeen stale = c.Seen();
  stale.began -= absl::Seconds(1);
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.h.sink.Count("look at cards"), 1);
  c.Take(std::move(stale));
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.h.State(c.run), core::JobState::kRunning) << "a look that began before says nothing of it";
  c.Look({kFault});
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.Kind(), "gpu_lost");
}

TEST(Cards, ALookThatNeverComesIsNotWaitedForLong) {
  Cards c;
  const std::string key = c.Run();
  c.Look();
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  c.h.Restart();
  c.h.now += absl::Seconds(14);
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.h.State(c.run), core::JobState::kRunning);
  c.h.now += absl::Seconds(1);
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.Kind(), "user_exit");
}

TEST(Cards, WhereNobodyLooksNothingWaits) {
  Cards c;
  const std::string key = c.Run();
  c.h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(c.Kind(), "user_exit");
  EXPECT_EQ(c.h.sink.Count("look at cards"), 0);
  Cards declared;
  declared.h.virtual_cards = true;
  declared.h.Restart();
  const std::string other = declared.Run();
  declared.Look({kFault});
  declared.h.Observe(other, Harness::UpOrOver(1, 1));
  EXPECT_EQ(declared.Kind(), "user_exit") << "virtual cards do not break";
}

TEST(Cards, ARefusedLaunchAsksForALook) {
  Cards c;
  c.Look();
  c.run = c.h.Submit();
  c.h.Answer_(LaunchResult{LaunchRefused{"card 3 of n1 is in use by process 4711 (python)"}}, "launch");
  EXPECT_EQ(c.h.sink.Count("look at cards"), 1);
}

TEST(Cards, WhatStrangersComputeOnIsWithheld) {
  Cards c;
  CardsSeen seen = c.Seen();
  seen.cards[3].held_by = "process 4711 (python)";
  c.Take(seen);
  EXPECT_THAT(c.Nodes().elsewhere,
              ElementsAre(core::CardHeldElsewhere{{.node = "n1", .card = 3}, "process 4711 (python)"}));
  CardsSeen other = c.Seen();
  std::erase_if(other.cards, [](const CardSight& card) { return card.node == "n1"; });
  c.Take(other);
  EXPECT_THAT(c.Nodes().elsewhere, SizeIs(1)) << "a node that was not seen has not changed";
  c.Look();
  EXPECT_THAT(c.Nodes().elsewhere, IsEmpty());
}

TEST(Cards, AJobsOwnProcessIsNoStranger) {
  Cards c;
  const std::string key = c.Run();
  CardsSeen seen = c.Seen();
  seen.cards[3].held_by = "process 4711 (python)";
  c.Take(seen);
  EXPECT_THAT(c.Nodes().elsewhere, IsEmpty());
  c.h.now += absl::Seconds(1);
  c.h.Observe(key, Harness::UpOrOver(1, 0));
  c.Take(seen);
  EXPECT_THAT(c.Nodes().elsewhere, IsEmpty()) << "the look began while the job still ran";
}

TEST(Cards, AJobThatComputesNothingIsShownOnce) {
  Cards c;
  c.h.policy.idle_after = absl::Minutes(30);
  c.h.Restart();
  c.Run();
  const auto told = [&] {
    int count = 0;
    const auto events = c.h.store->Events(c.run, 0, 1000);
    for (const store::EventRow& event : *events) {
      if (event.event == store::kIdleEvent) {
        ++count;
        EXPECT_EQ(event.note, "its 8 cards have done nothing for 30 min");
      }
    }
    return count;
  };
  for (int minute = 0; minute < 30; ++minute) {
    c.Look({}, 0);
    EXPECT_FALSE(c.Live().idle_since.at(0));
    c.h.now += absl::Minutes(1);
  }
  EXPECT_EQ(told(), 0);
  for (int i = 0; i < 3; ++i) c.Look({}, 0);
  EXPECT_EQ(told(), 1);
  EXPECT_EQ(c.Live().idle_since.at(0), c.h.now - absl::Minutes(30));
  c.Look({}, 1);
  EXPECT_FALSE(c.Live().idle_since.at(0));
  c.Look({}, 0);
  c.h.now += absl::Minutes(30);
  c.Look({}, 0);
  EXPECT_EQ(told(), 1) << "nobody has looked in between";
  for (int minute = 0; minute < 30; ++minute) {
    c.h.now += absl::Minutes(1);
    c.Look({}, 0);
  }
  EXPECT_EQ(told(), 2) << "another spell";
}

}  // namespace
}  // namespace tp::loop::test
