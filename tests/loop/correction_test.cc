// Ends that were billed without their record: who goes on asking for it, and what comes of the answer.
#include <gmock/gmock.h>

#include "harness.h"

namespace tp::loop::test {
namespace {

using core::LedgerRow;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kStartUnixUs = 1'800'000'000'000'000;

// As Harness::UpOrOver starts its ranks.
HostStamp After(int64_t seconds) { return {"h", "b", (seconds + 1) * 1'000'000, kStartUnixUs + seconds * 1'000'000}; }

RankObservation Rank(int rank) {
  RankObservation seen;
  seen.rank = rank;
  seen.tree = Tree::kGone;
  seen.started = StartRecord{"nonce", After(0), 0};
  return seen;
}

RankObservation Recorded(int rank, int64_t ended_after_s) {
  RankObservation seen = Rank(rank);
  seen.ended.emplace().at = After(ended_after_s);
  return seen;
}

// Its runner beat for the last time then, and left no record.
RankObservation Silent(int rank, int64_t beat_after_s) {
  RankObservation seen = Rank(rank);
  seen.heartbeat = Heartbeat{9, After(beat_after_s)};
  return seen;
}

Observation Gone(std::vector<RankObservation> ranks) {
  Present present;
  present.claim = Claim::kThisLaunch;
  present.phase = EnginePhase::kEnded;
  present.freed = true;
  present.ranks = std::move(ranks);
  return present;
}

Observation Left(std::vector<RankObservation> ranks) { return Absent{Claim::kThisLaunch, std::move(ranks)}; }

class CorrectionTest : public testing::Test {
 protected:
  CorrectionTest() {
    h.policy.infrastructure_retries = 0;
    h.Restart();
  }

  // A job of two nodes with 8 cards each whose second rank leaves no end record; its attempt's key.
  std::string EndsSilently(int64_t beat_after_s = 9) {
    run = h.Submit("h200:16");
    const std::string key = h.sink.Last("launch").key;
    h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
    h.Observe(key, Harness::UpOrOver(2, std::nullopt));
    h.Observe(key, Gone({Recorded(0, 3), Silent(1, beat_after_s)}));
    EXPECT_EQ(h.State(run), core::JobState::kFailed);
    return key;
  }

  std::vector<LedgerRow> Ledger() { return h.store->Ledger({}, 0, 100).value(); }
  std::vector<core::Correction> Owed() { return h.store->Load().value().corrections; }

  int64_t GpuMs() {
    int64_t gpu_ms = 0;
    for (const LedgerRow& row : Ledger()) gpu_ms += row.gpu_ms;
    return gpu_ms;
  }

  void Pass(absl::Duration time) {
    h.now += time;
    h.Settle();
  }

  void ExpectSound() {
    for (const absl::Status& status :
         {store::CheckLedger(*h.store), store::CheckCorrections(*h.store), store::CheckRuns(*h.store).status()}) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  Harness h;
  int64_t run = 0;
};

TEST_F(CorrectionTest, ARecordThatComesLateCorrectsTheBillOnce) {
  const std::string key = EndsSilently();
  ASSERT_THAT(Ledger(), SizeIs(1));
  EXPECT_TRUE(Ledger()[0].flagged);
  EXPECT_EQ(GpuMs(), 9000 * 16);
  ASSERT_THAT(Owed(), SizeIs(1));
  EXPECT_EQ(Owed()[0].target.key, key);
  EXPECT_TRUE(Owed()[0].ranks[0].ended.has_value()) << "what the last sight brought is known";
  EXPECT_EQ(h.sink.Count("look"), 0);

  Pass(absl::Minutes(1));
  EXPECT_EQ(h.sink.Count("look"), 1);
  EXPECT_EQ(h.sink.Last("look").key, key);
  h.Observe(key, Left({Recorded(0, 3), Silent(1, 9)}));
  EXPECT_THAT(Owed(), SizeIs(1));
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  ASSERT_THAT(Ledger(), SizeIs(2));
  EXPECT_TRUE(Ledger()[1].delta);
  EXPECT_FALSE(Ledger()[1].flagged);
  EXPECT_EQ(Ledger()[1].gpu_ms, -2000 * 16);
  EXPECT_EQ(GpuMs(), 7000 * 16);
  EXPECT_THAT(Owed(), IsEmpty());
  ExpectSound();

  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  Pass(absl::Hours(48));
  EXPECT_THAT(Ledger(), SizeIs(2));
  EXPECT_EQ(h.sink.Count("look"), 1);
}

TEST_F(CorrectionTest, NothingIsOwedForAnEndWithAllItsRecords) {
  const int64_t other = h.Submit();
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  h.Observe(key, Harness::UpOrOver(1, 1));
  EXPECT_EQ(h.State(other), core::JobState::kFailed);
  EXPECT_THAT(Owed(), IsEmpty());
  Pass(absl::Hours(2));
  EXPECT_EQ(h.sink.Count("look"), 0);
}

TEST_F(CorrectionTest, AsksEverMoreSeldomAndForAWeek) {
  const std::string key = EndsSilently();
  std::vector<int64_t> minutes;
  for (int64_t minute = 1; minute <= 5 * 60; ++minute) {
    const int before = h.sink.Count("look");
    Pass(absl::Minutes(1));
    if (h.sink.Count("look") > before) minutes.push_back(minute);
  }
  EXPECT_THAT(minutes, testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 124, 184, 244));
  Pass(core::kCorrectionLasts - absl::Hours(5) - absl::Seconds(1));
  h.Observe(key, Left({Silent(1, 9)}));
  EXPECT_THAT(Owed(), SizeIs(1));
  Pass(absl::Seconds(1));
  h.Observe(key, Unknown{"the storage does not answer"});
  EXPECT_THAT(Owed(), SizeIs(1)) << "nobody knows whether it has appeared";
  h.Observe(key, Left({Silent(1, 9)}));
  EXPECT_THAT(Owed(), IsEmpty());
  const int looks = h.sink.Count("look");
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  Pass(absl::Hours(3));
  EXPECT_EQ(h.sink.Count("look"), looks);
  EXPECT_EQ(GpuMs(), 9000 * 16);
  ExpectSound();
}

TEST_F(CorrectionTest, ARestartGoesOnAskingAtOnce) {
  const std::string key = EndsSilently();
  h.Restart();
  EXPECT_LE(h.loop->NextTimer(), h.now) << "although no message waits";
  h.Settle();
  EXPECT_EQ(h.sink.Count("look"), 1);
  EXPECT_THAT(Owed(), SizeIs(1));
  Pass(absl::Minutes(1));
  EXPECT_EQ(h.sink.Count("look"), 2);
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 12)}));
  EXPECT_EQ(GpuMs(), 12'000 * 16);
  ExpectSound();
  h.Restart();
  h.Settle();
  EXPECT_EQ(h.sink.Count("look"), 2);
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 12)}));
  EXPECT_EQ(GpuMs(), 12'000 * 16);
}

TEST_F(CorrectionTest, APartOfTheRecordsIsRememberedWhateverBecomesOfThem) {
  run = h.Submit("h200:16");
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(2, std::nullopt));
  h.Observe(key, Gone({Silent(0, 9), Silent(1, 9)}));
  Pass(absl::Minutes(1));
  h.Observe(key, Left({Recorded(0, 8)}));
  EXPECT_THAT(Ledger(), SizeIs(1));
  h.Restart();
  h.Settle();
  h.Observe(key, Left({Silent(0, 9), Recorded(1, 6)}));
  EXPECT_EQ(GpuMs(), 8000 * 16);
  EXPECT_THAT(Owed(), IsEmpty());
  ExpectSound();
}

TEST_F(CorrectionTest, TheRowsAndTheEndOfWhatIsOwedAreOneCommit) {
  const std::string key = EndsSilently();
  h.loop->Post(AttemptObserved{key, Left({Recorded(0, 3), Recorded(1, 7)})});
  const auto txn = h.loop->Turn(h.now);
  ASSERT_TRUE(txn.has_value());
  EXPECT_THAT(txn->ledger, SizeIs(1));
  EXPECT_THAT(txn->corrections_done, testing::ElementsAre(key));
  // Killed before it: both are still to come.
  h.Restart();
  h.Settle();
  EXPECT_THAT(Ledger(), SizeIs(1));
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  EXPECT_EQ(GpuMs(), 7000 * 16);
  ExpectSound();
}

TEST_F(CorrectionTest, TheNextAttemptDoesNotDisturbIt) {
  const std::string key = EndsSilently();
  ASSERT_TRUE(h.Do(RetryRun{h.store->GetRun(run).value()}).ok());
  ASSERT_NE(h.sink.Last("launch").key, key);
  Pass(absl::Minutes(1));
  EXPECT_EQ(h.sink.Last("look").key, key);
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  EXPECT_EQ(GpuMs(), 7000 * 16);
  EXPECT_EQ(h.State(run), core::JobState::kSubmitted);
  ExpectSound();
}

TEST_F(CorrectionTest, ARemovedRunIsCorrectedNoMore) {
  const std::string key = EndsSilently();
  ASSERT_TRUE(h.Do(RemoveRun{h.store->GetRun(run).value()}).ok());
  EXPECT_THAT(Owed(), IsEmpty());
  Pass(absl::Hours(1));
  EXPECT_EQ(h.sink.Count("look"), 0);
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 7)}));
  EXPECT_EQ(GpuMs(), 9000 * 16);
}

TEST_F(CorrectionTest, AClockThatIsSetShortensNothing) {
  const std::string key = EndsSilently();
  h.now += absl::Hours(24 * 30);
  h.loop->ClockSet(absl::Hours(24 * 30));
  h.Settle();
  EXPECT_EQ(h.sink.Count("look"), 0);
  EXPECT_EQ(Owed()[0].created_at, h.now);
  Pass(absl::Minutes(1));
  EXPECT_EQ(h.sink.Count("look"), 1);
  h.Observe(key, Left({Silent(1, 9)}));
  EXPECT_THAT(Owed(), SizeIs(1));
}

TEST_F(CorrectionTest, WhatIsTakenBackLetsTheOwnersNextJobStart) {
  const std::string key = EndsSilently(900);  // 4 GPU-hours
  core::QuotaLimits limits;
  limits.gpu_hours = 2;
  ASSERT_TRUE(h.Do(SetQuota{.user = "ada", .from = {}, .until = {}, .clear = {}, .limits = limits}, "",
                   {"root", store::Role::kAdmin})
                  .ok());
  const int64_t next = h.Submit();
  EXPECT_EQ(h.State(next), core::JobState::kQueued);
  h.Observe(key, Left({Recorded(0, 3), Recorded(1, 60)}));
  EXPECT_EQ(h.State(next), core::JobState::kSubmitted);
}

}  // namespace
}  // namespace tp::loop::test
