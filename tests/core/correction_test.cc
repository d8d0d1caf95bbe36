#include "core/correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tp::core {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kDayUs = 24 * 3600 * kUsPerSecond;
const absl::Time kSeenAt = absl::FromUnixSeconds(5);

HostStamp After(int64_t us, int64_t opened_unix_us) { return {"host", "boot", us, opened_unix_us + us}; }

// Two pools of one rank each, 8 and 3 cards, opened at `opened_unix_us`; the first rank has ended a second later, of
// the other only a heartbeat is known.
Correction Owed(int64_t opened_unix_us, int64_t beat_after_us) {
  Correction correction;
  correction.attempt = {{7, 1}, 2};
  correction.owner = "ana";
  correction.project = "vision";
  correction.target.key = "tp-test-e1-7-s1-a2";
  for (const int cards : {8, 3}) {
    PoolPlacement pool;
    pool.series = cards == 8 ? "h200" : "a100";
    pool.profile = pool.series + "-big";
    pool.gpus_per_node = cards;
    pool.ranks.resize(1);
    correction.placement.push_back(pool);
    RankObservation rank;
    rank.pool = static_cast<int>(correction.ranks.size());
    rank.started = StartRecord{"nonce", After(0, opened_unix_us), 0};
    rank.heartbeat = Heartbeat{1, After(beat_after_us, opened_unix_us)};
    correction.ranks.push_back(rank);
  }
  correction.ranks[0].ended.emplace().at = After(kUsPerSecond, opened_unix_us);
  correction.meter = OpenMeter(correction.ranks, kSeenAt);
  CloseMeter(correction.meter, correction.ranks, std::nullopt);
  return correction;
}

Absent EndOf(int pool, HostStamp at) {
  Absent absent;
  RankObservation rank;
  rank.pool = pool;
  rank.ended.emplace().at = std::move(at);
  absent.ranks.push_back(rank);
  return absent;
}

using Sums = std::map<std::pair<int32_t, std::string>, int64_t>;  // by pool and month

void AddTo(Sums& sums, const std::vector<LedgerRow>& rows) {
  for (const LedgerRow& row : rows) sums[{row.pool, row.month}] += row.gpu_ms;
}

std::vector<LedgerRow> BilledBy(const Correction& correction, const Meter& meter, absl::TimeZone zone) {
  return LedgerRows({correction.attempt.step, correction.attempt.attempt, correction.owner, correction.project}, meter,
                    correction.placement, zone);
}

TEST(AwaitsRecords, WhereAFlaggedEndLacksOne) {
  const Correction owed = Owed(0, 9 * kUsPerSecond);
  EXPECT_TRUE(AwaitsRecords(owed.meter, owed.ranks));
  Meter sound = owed.meter;
  sound.flagged = false;
  EXPECT_FALSE(AwaitsRecords(sound, owed.ranks));
  // Flagged for another reason, which no record changes.
  std::vector<RankObservation> ended = owed.ranks;
  ended[1].ended = ended[0].ended;
  EXPECT_FALSE(AwaitsRecords(owed.meter, ended));
}

TEST(NextCorrectionLook, ComesEverMoreSeldom) {
  EXPECT_EQ(NextCorrectionLook(-absl::Hours(1)), absl::Minutes(1));
  EXPECT_EQ(NextCorrectionLook(absl::ZeroDuration()), absl::Minutes(1));
  EXPECT_EQ(NextCorrectionLook(absl::Minutes(7)), absl::Minutes(7));
  EXPECT_EQ(NextCorrectionLook(absl::Hours(100)), absl::Hours(1));
}

TEST(TakeRecords, TakesWhatWasMissingAndNothingElse) {
  Correction owed = Owed(0, 9 * kUsPerSecond);
  const Correction before = owed;
  EXPECT_FALSE(TakeRecords(owed, Unknown{"the storage does not answer"}));
  EXPECT_FALSE(TakeRecords(owed, EndOf(0, After(77 * kUsPerSecond, 0))));  // known already
  EXPECT_FALSE(TakeRecords(owed, EndOf(2, After(5 * kUsPerSecond, 0))));   // no such rank
  Present alive;
  alive.ranks = before.ranks;
  EXPECT_FALSE(TakeRecords(owed, alive));
  EXPECT_EQ(owed, before);
  EXPECT_FALSE(IsComplete(owed));

  EXPECT_TRUE(TakeRecords(owed, EndOf(1, After(5 * kUsPerSecond, 0))));
  EXPECT_TRUE(IsComplete(owed));
  EXPECT_FALSE(TakeRecords(owed, EndOf(1, After(6 * kUsPerSecond, 0))));
}

TEST(CorrectionRows, TakesBackWhatWasBilledTooMuch) {
  Correction owed = Owed(0, 9 * kUsPerSecond);
  ASSERT_TRUE(TakeRecords(owed, EndOf(1, After(5 * kUsPerSecond, 0))));
  const std::vector<LedgerRow> rows = CorrectionRows(owed, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 2u);
  LedgerRow expected;
  expected.run = 7;
  expected.step = 1;
  expected.attempt = 2;
  expected.series = "h200";
  expected.profile = "h200-big";
  expected.owner = "ana";
  expected.project = "vision";
  expected.month = "1970-01";
  expected.cards = 8;
  expected.start_unix_ms = 9000;
  expected.end_unix_ms = 5000;
  expected.gpu_ms = -32'000;
  expected.delta = true;
  expected.evidence = "end record of pool 1 rank 0";
  EXPECT_EQ(rows[0], expected);
  EXPECT_EQ(rows[1].pool, 1);
  EXPECT_EQ(rows[1].gpu_ms, -12'000);
}

TEST(CorrectionRows, AddsWhatWasBilledTooLittle) {
  Correction owed = Owed(0, 2 * kUsPerSecond);
  ASSERT_TRUE(TakeRecords(owed, EndOf(1, After(5 * kUsPerSecond, 0))));
  const std::vector<LedgerRow> rows = CorrectionRows(owed, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].gpu_ms, 24'000);
  EXPECT_EQ(rows[1].gpu_ms, 9'000);
}

// The record that was missing is no later than another's: still a row, which says that the end is right.
TEST(CorrectionRows, OfNothingSayThatTheEndWasRight) {
  Correction owed = Owed(0, kUsPerSecond);
  ASSERT_TRUE(TakeRecords(owed, EndOf(1, After(1, 0))));
  const std::vector<LedgerRow> rows = CorrectionRows(owed, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 2u);
  for (const LedgerRow& row : rows) {
    EXPECT_EQ(row.gpu_ms, 0);
    EXPECT_TRUE(row.delta);
    EXPECT_FALSE(row.flagged);
  }
}

TEST(CorrectionRows, AnImplausibleRecordIsCutOffAndFlagged) {
  Correction owed = Owed(0, kUsPerSecond);
  ASSERT_TRUE(TakeRecords(owed, EndOf(1, After(INT64_MAX / 2, 0))));
  const std::vector<LedgerRow> rows = CorrectionRows(owed, absl::UTCTimeZone());
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(rows.back().flagged);
  EXPECT_THAT(rows.back().evidence, testing::HasSubstr("not plausible"));
}

// Whatever was billed and whichever months lie between: the same as if the record had been there in time.
TEST(CorrectionRows, WithTheBillAreWhatTheRecordComesTo) {
  std::mt19937_64 random(20261130);
  absl::TimeZone apia;
  ASSERT_TRUE(absl::LoadTimeZone("Pacific/Apia", &apia));
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  for (int i = 0; i < 2000; ++i) {
    const absl::TimeZone zone = i % 2 == 0 ? absl::UTCTimeZone() : apia;
    const int64_t opened = below(2'000'000'000) * kUsPerSecond + below(kUsPerSecond);
    Correction owed = Owed(opened, below(i % 3 == 0 ? kDayUs : 100 * kDayUs));
    const std::vector<LedgerRow> billed = BilledBy(owed, owed.meter, zone);
    ASSERT_TRUE(TakeRecords(owed, EndOf(1, After(below(100 * kDayUs), opened))));

    Meter in_time = OpenMeter(owed.ranks, kSeenAt);
    CloseMeter(in_time, owed.ranks, std::nullopt);
    Sums expected;
    AddTo(expected, BilledBy(owed, in_time, zone));
    Sums sums;
    AddTo(sums, billed);
    const std::vector<LedgerRow> rows = CorrectionRows(owed, zone);
    AddTo(sums, rows);
    std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
    std::erase_if(expected, [](const auto& sum) { return sum.second == 0; });
    ASSERT_EQ(sums, expected) << i;

    std::map<std::pair<int32_t, std::string>, int> times;
    for (const LedgerRow& row : rows) {
      EXPECT_EQ(row.gpu_ms, (row.end_unix_ms - row.start_unix_ms) * row.cards);
      const int so_often = ++times[{row.pool, row.month}];
      EXPECT_EQ(so_often, 1);
    }
  }
}

}  // namespace
}  // namespace tp::core
