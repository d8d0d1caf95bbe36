#include "core/card_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world.h"

namespace tp::core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const CardFault kFault = {.node = "node-2", .card = 3, .why = "Xid 79: fallen off the bus"};

CardsLooked Found(std::vector<CardFault> faults, absl::Time began) {
  return {.began = began, .faults = std::move(faults)};
}
Observed Watched(Observed seen) {
  seen.cards_watched = true;
  return seen;
}
Observed FailedOnOne(int code = 1) { return Seen({Over(0, Exit(0)), Over(1, Exit(code))}, true); }

TEST(NewFaults, AreToldOnceAndAgainWhenTheyCameAgain) {
  KnownFaults known;
  const std::vector<CardSight> broken = {{.node = "n1", .card = 0}, {.node = "n1", .card = 1, .broken = "Xid 79"}};
  EXPECT_THAT(NewFaults(broken, known), ElementsAre(CardFault{.node = "n1", .card = 1, .why = "Xid 79"}));
  EXPECT_THAT(NewFaults(broken, known), IsEmpty());
  EXPECT_THAT(NewFaults({}, known), IsEmpty()) << "a node that does not answer has not changed";
  EXPECT_THAT(NewFaults(broken, known), IsEmpty());
  EXPECT_THAT(NewFaults({{.node = "n1", .card = 1, .broken = "Xid 48"}}, known),
              ElementsAre(CardFault{.node = "n1", .card = 1, .why = "Xid 48"}));
  EXPECT_THAT(NewFaults({{.node = "n1", .card = 1}}, known), IsEmpty());
  EXPECT_THAT(NewFaults(broken, known), ElementsAre(CardFault{.node = "n1", .card = 1, .why = "Xid 79"}));
}

TEST(NewFaults, OfTwoLinesOfALogTheOlderIsNoNews) {
  const auto seen = [](const char* why, int64_t at_s) {
    return std::vector<CardSight>{
        {.node = "n1", .card = 1, .broken = why, .broke_at = absl::FromUnixSeconds(at_s), .utilization_percent = {}}};
  };
  KnownFaults known;
  EXPECT_THAT(NewFaults(seen("Xid 48", 1000), known), SizeIs(1));
  EXPECT_THAT(NewFaults(seen("Xid 95", 2000), known), SizeIs(1));
  EXPECT_THAT(NewFaults(seen("Xid 48", 1000), known), IsEmpty()) << "the newer line has left the log";
  EXPECT_THAT(NewFaults(seen("Xid 95", 2001), known), IsEmpty()) << "times are only as exact as clocks";
  EXPECT_THAT(NewFaults(seen("Xid 95", 3000), known), SizeIs(1)) << "the same again, later";
}

TEST(StillBroken, TellsWhatNobodyTookWhileItIsSo) {
  UntakenFaults untaken = {
      {{.node = "n1", .card = 1}, kFault}, {{.node = "n1", .card = 2}, kFault}, {{.node = "n2", .card = 1}, kFault}};
  EXPECT_THAT(StillBroken({{.node = "n1", .card = 1, .broken = "Xid 79"}, {.node = "n1", .card = 2}}, untaken),
              ElementsAre(kFault));
  EXPECT_THAT(untaken, SizeIs(1)) << "of the node that was not seen";
}

TEST(CardFaults, NameAFailureAndNothingElse) {
  World failed(2);
  failed.RunAll();
  EXPECT_EQ(failed.Do(Found({kFault}, failed.now)), JobState::kRunning);
  EXPECT_TRUE(failed.effects.empty()) << "nothing is done to the job";
  EXPECT_EQ(failed.Do(FailedOnOne()), JobState::kQueued);
  EXPECT_EQ(failed.step.past.back().failure->kind, FailureKind::kGpuLost);
  EXPECT_EQ(failed.step.infrastructure_retries_used, 1);
  EXPECT_EQ(failed.step.user_retries_used, 0);
  EXPECT_EQ(failed.step.avoid_node, "node-2");

  World clean(2);
  clean.RunAll();
  clean.Do(Found({kFault}, clean.now));
  EXPECT_EQ(clean.Do(FailedOnOne(0)), JobState::kSucceeded);

  World stopped(2);
  stopped.RunAll();
  stopped.Do(Found({kFault}, stopped.now));
  stopped.Do(StopRequested{});
  EXPECT_EQ(stopped.Do(Seen(
                {Over(0, Killed(15, 5000, SignalledBy::kTpd)), Over(1, Killed(15, 5000, SignalledBy::kTpd))}, true)),
            JobState::kStopped);
}

TEST(CardFaults, LeaveWhatTheRecordsExplain) {
  EndRecord oom = Killed(9);
  oom.oom_kills = 1;
  EndRecord never = Exit(-1);
  never.exit = ExitKind::kNotStarted;
  for (const auto& [end, kind] : {std::pair{oom, FailureKind::kUserOom}, std::pair{never, FailureKind::kUserExit}}) {
    World w(2);
    w.RunAll();
    w.Do(Found({kFault}, w.now));
    EXPECT_EQ(w.Do(Seen({Over(0, Exit(0)), Over(1, end)}, true)), JobState::kFailed);
    EXPECT_EQ(w.step.failure->kind, kind);
  }
}

TEST(CardFaults, TheFirstOfACardIsKept) {
  World w(2);
  w.RunAll();
  w.Do(Found({kFault, {.node = "node-1", .card = 0, .why = "4 memory errors"}}, w.now));
  w.Do(Found({{.node = "node-1", .card = 0, .why = "5 memory errors"}}, w.now));
  ASSERT_EQ(w.step.attempt->sight.card_faults.size(), 2u);
  EXPECT_EQ(w.step.attempt->sight.card_faults[1].why, "4 memory errors");
}

TEST(CardFaults, OfACardThatWasPutBackBeforeTheJobBeganAreForgotten) {
  const CardPutBack mended = {.node = kFault.node, .card = kFault.card};
  World w(2);
  w.policy.user_retries = 0;
  w.Do(Admit(2));
  w.Do(LaunchAnswered{LaunchAccepted{}});
  w.Do(Found({kFault, {.node = "node-1", .card = 0, .why = "Xid 48"}}, w.now));
  w.Do(mended);
  EXPECT_THAT(w.step.attempt->sight.card_faults, SizeIs(1));
  w.Do(CardPutBack{.node = "node-1", .card = 0});
  w.Do(Seen({Up(0), Up(1)}));
  EXPECT_EQ(w.Do(FailedOnOne()), JobState::kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kUserExit);

  World began(2);
  began.RunAll();
  began.Do(Found({kFault}, began.now));
  began.Do(mended);
  began.Do(FailedOnOne());
  EXPECT_EQ(began.step.past.back().failure->kind, FailureKind::kGpuLost) << "it broke under the job";
}

TEST(LooksAtCards, AnEndThatTheyMayExplainWaitsForOne) {
  World w(2);
  w.policy.user_retries = 0;
  w.RunAll();
  EXPECT_EQ(w.Do(Watched(FailedOnOne())), JobState::kRunning);
  EXPECT_EQ(w.Do(Found({}, w.now - absl::Seconds(1))), JobState::kRunning);
  EXPECT_EQ(w.Do(Watched(FailedOnOne())), JobState::kRunning) << "that look began before";
  w.Do(Found({}, w.now));
  EXPECT_EQ(w.Do(Watched(FailedOnOne())), JobState::kFailed);
  EXPECT_EQ(w.step.failure->kind, FailureKind::kUserExit);
}

TEST(LooksAtCards, NothingElseWaits) {
  World clean(2);
  clean.RunAll();
  EXPECT_EQ(clean.Do(Watched(FailedOnOne(0))), JobState::kSucceeded);
  World lost(2);
  lost.RunAll();
  EXPECT_EQ(lost.Do(Watched(Seen({Over(0, Exit(0)), Rank(1, Tree::kGone, Start(100))}, true))), JobState::kQueued);
  World stopped(2);
  stopped.RunAll();
  stopped.Do(Watched(FailedOnOne()));
  stopped.Do(StopRequested{});
  EXPECT_EQ(stopped.Do(Watched(FailedOnOne())), JobState::kStopped);
}

TEST(LooksAtCards, ThePatienceEnds) {
  World w(2);
  w.RunAll();
  w.Do(Watched(FailedOnOne()));
  EXPECT_EQ(w.After(w.policy.look_patience - absl::Seconds(1), Watched(FailedOnOne())), JobState::kRunning);
  EXPECT_EQ(w.After(absl::Seconds(1), Watched(FailedOnOne())), JobState::kFailed);
}

TEST(RealCards, AreThoseOfNodesThatAreWatched) {
  World w(2);
  w.RunAll();
  Attempt attempt = *w.step.attempt;
  EXPECT_EQ(RealCardsOf(attempt).size(), 16u);
  EXPECT_TRUE(OnWatchedNodes(attempt, {"node-1", "node-2", "node-3"}));
  EXPECT_FALSE(OnWatchedNodes(attempt, {"node-1"}));
  attempt.shape.pools[0].demand.virtual_cards = true;
  EXPECT_TRUE(RealCardsOf(attempt).empty());
  EXPECT_FALSE(OnWatchedNodes(attempt, {"node-1", "node-2"}));
}

TEST(AllIdle, NeedsASightOfEveryCard) {
  World w(1);
  w.RunAll();
  std::map<NodePart, CardSight> seen;
  for (int card = 0; card < 8; ++card) {
    EXPECT_FALSE(AllIdle(*w.step.attempt, seen));
    seen[{.node = "node-1", .card = card}].utilization_percent = 0;
  }
  EXPECT_EQ(AllIdle(*w.step.attempt, seen), true);
  seen[{.node = "node-1", .card = 5}].utilization_percent = 1;
  EXPECT_EQ(AllIdle(*w.step.attempt, seen), false);
  seen[{.node = "node-1", .card = 5}].utilization_percent.reset();
  EXPECT_FALSE(AllIdle(*w.step.attempt, seen)) << "some cards do not say";
}

TEST(IdleSentence, CountsInMinutesAndHours) {
  EXPECT_EQ(IdleSentence(16, absl::Minutes(42)), "its 16 cards have done nothing for 42 min");
  EXPECT_EQ(IdleSentence(1, absl::Minutes(125)), "its card has done nothing for 2 h 5 min");
}

}  // namespace
}  // namespace tp::core::test
