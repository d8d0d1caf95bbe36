#include "core/node_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/withheld.h"

namespace tp::core {
namespace {

using ::testing::ElementsAre;

absl::Time At(int hours) { return absl::FromUnixSeconds(1'800'000'000) + absl::Hours(hours); }

Strike Lost(const std::string& owner, int hour, const std::string& node = "n1") {
  return {.node = node, .attempt = {{hour, 0}, 1}, .owner = owner, .kind = FailureKind::kLost, .at = At(hour)};
}

Attempt OnTwoNodes() {
  Attempt attempt;
  attempt.placement.resize(1);
  attempt.placement[0].ranks = {{"n1", "10.0.0.1", {0}}, {"n2", "10.0.0.2", {0}}};
  attempt.ranks.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    attempt.ranks[static_cast<size_t>(rank)].rank = rank;
    attempt.ranks[static_cast<size_t>(rank)].ended = EndRecord{};
  }
  return attempt;
}

TEST(NodeBook, StrikesOfOneUserTakeNoNodeFromTheOthers) {
  NodeBook book;
  for (int hour = 0; hour < 5; ++hour) book.Add(Lost("ada", hour));
  EXPECT_FALSE(book.MarkForStrikes("n1", At(5)));
  book.Add(Lost("ben", 5));
  const auto mark = book.MarkForStrikes("n1", At(5));
  ASSERT_TRUE(mark);
  EXPECT_EQ(DescribeMark(*mark),
            "drained by tpd: 6 attempts of 2 users were lost there within a day, the last one: lost");
  EXPECT_FALSE(book.MarkForStrikes("n2", At(5)));
}

TEST(NodeBook, StrikesAreOverAfterADay) {
  NodeBook book;
  book.Add(Lost("ada", 0));
  book.Add(Lost("ben", 1));
  book.Add(Lost("cleo", 24));
  EXPECT_EQ(book.StrikesOf("n1", At(24)).size(), 2u);
  EXPECT_FALSE(book.MarkForStrikes("n1", At(24)));
  EXPECT_TRUE(book.StrikesOf("n1", At(48)).empty());
}

TEST(NodeBook, AMarkIsNeverReplacedByTpdsOwn) {
  NodeBook book;
  book.Put({.part = {.node = "n1"}, .kind = MarkKind::kDead, .reason = "burnt", .by = "root", .at = At(0)});
  for (const char* owner : {"ada", "ben", "cleo"}) book.Add(Lost(owner, 1));
  EXPECT_FALSE(book.MarkForStrikes("n1", At(1)));
  EXPECT_TRUE(book.IsDead("n1"));
  book.Drop({.node = "n1"});
  EXPECT_TRUE(book.MarkForStrikes("n1", At(1)));
  book.DropStrikes("n1");
  EXPECT_FALSE(book.MarkForStrikes("n1", At(1)));
}

TEST(StrikeOf, IsOfTheNodeWhoseRankWasLost) {
  Attempt attempt = OnTwoNodes();
  attempt.ranks[1].ended.reset();
  PastAttempt left;
  left.ended_at = At(3);
  left.failure = Failure{FailureKind::kLost, ""};
  const auto strike = StrikeOf(attempt, {{7, 0}, 2}, "ada", left);
  ASSERT_TRUE(strike);
  EXPECT_EQ(*strike, (Strike{"n2", {{7, 0}, 2}, "ada", FailureKind::kLost, At(3)}));
}

TEST(StrikeOf, WhatTheJobOrTheEngineDidIsNoStrike) {
  Attempt attempt = OnTwoNodes();
  attempt.ranks[1].ended.reset();
  PastAttempt left;
  left.ended_at = At(3);
  EXPECT_FALSE(StrikeOf(attempt, {}, "ada", left));
  for (const FailureKind kind : {FailureKind::kUserExit, FailureKind::kUserOom, FailureKind::kTimeLimit,
                                 FailureKind::kImage, FailureKind::kEvicted, FailureKind::kPreempted}) {
    left.failure = Failure{kind, ""};
    EXPECT_FALSE(StrikeOf(attempt, {}, "ada", left)) << Name(kind);
  }
  left.failure = Failure{FailureKind::kStorage, ""};
  EXPECT_FALSE(StrikeOf(OnTwoNodes(), {}, "ada", left)) << "every rank left its record";
}

TEST(Withheld, TellsWhatKeepsNodesAndCardsOut) {
  NodeBook book;
  book.Put({.part = {.node = "n1"}, .kind = MarkKind::kDrained, .reason = "new disk", .by = "ada", .at = At(0)});
  book.Put(
      {.part = {.node = "n2", .card = 3}, .kind = MarkKind::kDrained, .reason = "Xid 79", .by = "tpd", .at = At(0)});
  const auto withheld = WithheldBy(book, {{{.node = "n2", .card = 0}, "container trainer"}});
  ASSERT_EQ(withheld.size(), 2u);
  EXPECT_TRUE(withheld.at("n1").node);
  EXPECT_THAT(withheld.at("n1").why, ElementsAre("n1 is drained by ada: new disk"));
  EXPECT_FALSE(withheld.at("n2").node);
  EXPECT_EQ(withheld.at("n2").cards, 0b1001u);
  EXPECT_THAT(withheld.at("n2").why,
              ElementsAre("card 3 of n2 is drained by tpd: Xid 79", "card 0 of n2 is held by container trainer"));
}

}  // namespace
}  // namespace tp::core
