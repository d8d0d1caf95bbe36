// What keeps jobs off nodes: marks of admins and of tpd, cards that others hold.
#include <gmock/gmock.h>

#include "harness.h"

namespace tp::loop::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Principal kOperator = {"olga", store::Role::kOperator};
const Principal kRoot = {"root", store::Role::kAdmin};

MarkNode Drain(const std::string& node, int card = core::NodePart::kWholeNode) {
  return {.part = {.node = node, .card = card}, .kind = core::MarkKind::kDrained, .reason = "new disk"};
}

std::string NodeOf(Harness& h, int64_t run) {
  const core::Step step = h.store->GetRun(run).value().steps.at(0);
  return step.attempt ? step.attempt->placement.at(0).ranks.at(0).node : "";
}

NodesAnswer Nodes(Harness& h) {
  NodesAnswer nodes;
  h.loop->Post(NodesQuery(), [&](absl::StatusOr<NodesAnswer> answer) { nodes = *std::move(answer); });
  h.Settle();
  return nodes;
}

// The attempt's only rank ran and is gone without a record.
void Lose(Harness& h, int64_t run) {
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  const std::string key = h.store->GetRun(run).value().steps.at(0).attempt->key;
  h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  Present lost = std::get<Present>(Harness::UpOrOver(1, 0));
  lost.ranks[0].ended.reset();
  h.Observe(key, lost);
}

TEST(Nodes, ADrainedNodeTakesNothingNewAndKeepsWhatRuns) {
  Harness h;
  const int64_t first = h.Submit();
  ASSERT_EQ(NodeOf(h, first), "n1");
  const auto answer = h.Do(Drain("n1"), "", kOperator);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->note, "n1 is drained by olga: new disk");
  EXPECT_EQ(NodeOf(h, h.Submit()), "n2");
  const int64_t third = h.Submit();
  EXPECT_EQ(NodeOf(h, third), "");
  EXPECT_EQ(h.State(first), core::JobState::kSubmitted);
  h.Restart();
  h.Settle();
  EXPECT_EQ(NodeOf(h, third), "") << "the mark outlives tpd";
  h.Answer_(LaunchResult{LaunchRejected{LaunchRejected::Kind::kEngine, "no"}}, "launch");
  ASSERT_TRUE(h.Do(ClearNode{{.node = "n1"}}, "", kOperator).ok());
  EXPECT_TRUE(Nodes(h).marks.empty());
}

TEST(Nodes, ACardIsLeftOut) {
  Harness h;
  ASSERT_TRUE(h.Do(Drain("n1", 0), "", kOperator).ok());
  const int64_t run = h.Submit("h200:2");
  EXPECT_THAT(h.store->GetRun(run).value().steps.at(0).attempt->placement.at(0).ranks.at(0).cards, ElementsAre(1, 2));
}

TEST(Nodes, CardsThatOthersHoldAreLeftOutAndNamed) {
  Harness h;
  std::vector<core::CardHeldElsewhere> held;
  for (int card = 0; card < 7; ++card) held.push_back({{.node = "n1", .card = card}, "container trainer"});
  h.loop->Post(CardsHeldElsewhere{"local", held});
  h.Settle();
  EXPECT_EQ(NodeOf(h, h.Submit("h200:2")), "n2");
  EXPECT_EQ(Nodes(h).elsewhere.size(), 7u);
  h.loop->Post(CardsHeldElsewhere{"local", {}});
  h.Settle();
  EXPECT_EQ(NodeOf(h, h.Submit("h200:2")), "n1");
}

TEST(Nodes, WhatCannotBeIsRefused) {
  Harness h;
  EXPECT_TRUE(absl::IsNotFound(h.Do(Drain("n9"), "", kOperator).status()));
  EXPECT_TRUE(absl::IsNotFound(h.Do(Drain("n1", 8), "", kOperator).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(h.Do(Drain("n1")).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(h.Do(ClearNode{{.node = "n1"}}).status()));
  MarkNode dead = Drain("n1");
  dead.kind = core::MarkKind::kDead;
  EXPECT_TRUE(absl::IsPermissionDenied(h.Do(dead, "", kOperator).status()));
  dead.part.card = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(h.Do(dead, "", kRoot).status()));
  EXPECT_TRUE(absl::IsNotFound(h.Do(ClearNode{{.node = "n1"}}, "", kOperator).status()));
}

TEST(Nodes, TheEngineIsToldOfADeadNode) {
  Harness h;
  h.Submit("h200:16");
  h.Submit();
  h.sink.sent.clear();
  MarkNode dead = Drain("n2");
  dead.kind = core::MarkKind::kDead;
  ASSERT_TRUE(h.Do(dead, "", kRoot).ok());
  EXPECT_EQ(h.sink.Count("track"), 1);
  EXPECT_THAT(h.sink.Last("track").hosts,
              ElementsAre(RankHost{"n1", "127.0.0.1", false}, RankHost{"n2", "127.0.0.1", true}));
}

TEST(Nodes, LostAttemptsOfTwoUsersTakeANodeOutOfService) {
  Harness h;
  h.policy.infrastructure_retries = 0;
  h.Restart();
  for (const char* user : {"ada", "ada", "ben"}) {
    EXPECT_TRUE(Nodes(h).marks.empty());
    const auto answer = h.Do(Harness::Job(), "", {user, store::Role::kUser});
    ASSERT_EQ(NodeOf(h, answer->run), "n1");
    Lose(h, answer->run);
    EXPECT_EQ(h.State(answer->run), core::JobState::kFailed);
  }
  const NodesAnswer nodes = Nodes(h);
  ASSERT_EQ(nodes.marks.size(), 1u);
  EXPECT_EQ(nodes.marks[0].by, core::kTpd);
  EXPECT_THAT(nodes.marks[0].reason, HasSubstr("3 attempts of 2 users"));
  EXPECT_EQ(nodes.strikes.size(), 3u);
  EXPECT_EQ(NodeOf(h, h.Submit()), "n2");
  h.Restart();
  EXPECT_EQ(Nodes(h).strikes.size(), 3u);
  ASSERT_TRUE(h.Do(ClearNode{{.node = "n1"}}, "", kOperator).ok());
  EXPECT_TRUE(Nodes(h).strikes.empty());
  h.Restart();
  EXPECT_TRUE(Nodes(h).strikes.empty());
}

}  // namespace
}  // namespace tp::loop::test
