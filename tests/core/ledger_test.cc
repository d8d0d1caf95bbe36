#include "core/ledger.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tp::core {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

HostStamp Stamp(const std::string& boot_id, int64_t boot_us, int64_t unix_us) {
  return {"host-" + boot_id, boot_id, boot_us, unix_us};
}

RankObservation Rank(int pool, int rank, HostStamp started) {
  RankObservation observation;
  observation.pool = pool;
  observation.rank = rank;
  observation.started = StartRecord{"nonce", std::move(started), 0};
  return observation;
}

void End(RankObservation& rank, HostStamp at) {
  rank.ended.emplace();
  rank.ended->at = std::move(at);
}

void Beat(RankObservation& rank, HostStamp at) { rank.heartbeat = Heartbeat{7, std::move(at)}; }

// On tpd's clock, which says something else than the hosts'.
const absl::Time kSeen = absl::FromUnixSeconds(1'000'000);

TEST(OpenMeter, OpensAtTheLastStart) {
  const Meter meter = OpenMeter(
      {Rank(0, 0, Stamp("a", 10, 1000)), Rank(0, 1, Stamp("b", 5, 3000)), Rank(0, 2, Stamp("c", 99, 2000))}, kSeen);
  EXPECT_EQ(meter.opened, Stamp("b", 5, 3000));
  EXPECT_FALSE(meter.closed_unix_us.has_value());
  EXPECT_EQ(MeteredMs(meter), 0);
}

TEST(CloseMeter, ClosesAtTheLastEndByTheBootClock) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 100, 1'000'000)), Rank(0, 1, Stamp("a", 200, 1'000'100))};
  End(ranks[0], Stamp("a", 100 + 5 * kSecondUs, 0));
  End(ranks[1], Stamp("a", 200 + 7 * kSecondUs, 0));  // real time was set back meanwhile
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, kSeen + absl::Seconds(99));
  EXPECT_EQ(MeteredMs(meter), 7000);
  EXPECT_FALSE(meter.flagged);
  EXPECT_EQ(meter.evidence, "end record of pool 0 rank 1");
}

TEST(CloseMeter, MeasuresARankOnAnotherHostByThatHostsBootClock) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 0, 1000)), Rank(0, 1, Stamp("b", 500, 900))};
  End(ranks[0], Stamp("a", 2 * kSecondUs, 77));
  End(ranks[1], Stamp("b", 500 + 3 * kSecondUs, 88));
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, std::nullopt);
  EXPECT_EQ(*meter.closed_unix_us, 900 + 3 * kSecondUs);
}

TEST(CloseMeter, TakesRealTimeAfterAReboot) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 0, 1000))};
  End(ranks[0], Stamp("rebooted", 5, 1000 + 4 * kSecondUs));
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, std::nullopt);
  EXPECT_EQ(MeteredMs(meter), 4000);
}

TEST(CloseMeter, WithoutAnEndRecordTakesTheLaterOfHeartbeatAndSightingAndFlagsIt) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 0, 0)), Rank(1, 0, Stamp("a", 0, 0))};
  End(ranks[0], Stamp("a", 1 * kSecondUs, 0));
  Beat(ranks[1], Stamp("a", 3 * kSecondUs, 0));
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, kSeen + absl::Seconds(2));
  EXPECT_EQ(MeteredMs(meter), 3000);
  EXPECT_TRUE(meter.flagged);
  EXPECT_EQ(meter.evidence, "no end record of pool 1 rank 0; closed at last heartbeat of pool 1 rank 0");

  CloseMeter(meter, ranks, kSeen + absl::Seconds(4));
  EXPECT_EQ(MeteredMs(meter), 4000);
  EXPECT_EQ(meter.evidence, "no end record of pool 1 rank 0; closed at last sighting");
}

TEST(CloseMeter, ALateEndRecordClearsTheFlag) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 0, 0))};
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, kSeen + absl::Seconds(9));
  EXPECT_TRUE(meter.flagged);
  End(ranks[0], Stamp("a", 6 * kSecondUs, 0));
  CloseMeter(meter, ranks, kSeen + absl::Seconds(9));
  EXPECT_FALSE(meter.flagged);
  EXPECT_EQ(MeteredMs(meter), 6000);
}

TEST(CloseMeter, WithoutAnySignIsEmptyAndFlagged) {
  const std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 0, 5000))};
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, std::nullopt);
  EXPECT_EQ(meter.closed_unix_us, 5000);
  EXPECT_TRUE(meter.flagged);
}

TEST(CloseMeter, IsNeverNegative) {
  std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", 100, 5000))};
  End(ranks[0], Stamp("a", 0, 0));
  Meter meter = OpenMeter(ranks, kSeen);
  CloseMeter(meter, ranks, std::nullopt);
  EXPECT_EQ(MeteredMs(meter), 0);
}

TEST(CloseMeter, CutsOffAForgedEnd) {
  for (const int64_t forged : {INT64_MAX, INT64_MIN}) {
    std::vector<RankObservation> ranks = {Rank(0, 0, Stamp("a", -forged / 2, 1000))};
    End(ranks[0], Stamp("a", forged, forged));
    Meter meter = OpenMeter(ranks, kSeen);
    CloseMeter(meter, ranks, std::nullopt);
    EXPECT_LE(MeteredMs(meter), int64_t{3660} * 24 * 3600 * 1000);
    EXPECT_EQ(meter.flagged, forged > 0);
    EXPECT_LE(LedgerRows({}, meter, std::vector<PoolPlacement>(1), absl::UTCTimeZone()).size(), 123u);
  }
}

// --- Rows -----------------------------------------------------------------------------------------

PoolPlacement Pool(const std::string& series, int gpus_per_node, size_t nodes) {
  PoolPlacement pool;
  pool.series = series;
  pool.profile = series + "-profile";
  pool.gpus_per_node = gpus_per_node;
  pool.ranks.resize(nodes);
  return pool;
}

Meter ClosedMeter(int64_t start_unix_us, int64_t end_unix_us) {
  Meter meter;
  meter.opened.unix_us = start_unix_us;
  meter.closed_unix_us = end_unix_us;
  meter.evidence = "end record of pool 0 rank 0";
  return meter;
}

absl::TimeZone Zone(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

int64_t Micros(absl::CivilSecond civil, absl::TimeZone zone) {
  return absl::ToUnixMicros(absl::FromCivil(civil, zone));
}

const LedgerOwner kOwner{{42, 1}, 3, "ana", "vision"};

TEST(LedgerRows, OneRowAPoolWithItsCards) {
  const std::vector<LedgerRow> rows = LedgerRows(kOwner, ClosedMeter(1'700'000'000'123'999, 1'700'000'010'124'000),
                                                 {Pool("h200", 8, 2), Pool("cpu", 0, 3)}, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 2u);
  LedgerRow expected;
  expected.run = 42;
  expected.step = 1;
  expected.attempt = 3;
  expected.pool = 0;
  expected.series = "h200";
  expected.profile = "h200-profile";
  expected.owner = "ana";
  expected.project = "vision";
  expected.month = "2023-11";
  expected.cards = 16;
  expected.start_unix_ms = 1'700'000'000'123;
  expected.end_unix_ms = 1'700'000'010'123;
  expected.gpu_ms = 160'000;
  expected.evidence = "end record of pool 0 rank 0";
  EXPECT_EQ(rows[0], expected);
  EXPECT_EQ(rows[1].pool, 1);
  EXPECT_EQ(rows[1].cards, 0);
  EXPECT_EQ(rows[1].gpu_ms, 0);
}

TEST(LedgerRows, SplitsAtTheZonesMonth) {
  const absl::TimeZone berlin = Zone("Europe/Berlin");
  const int64_t start = Micros(absl::CivilSecond(2025, 12, 31, 23, 59, 58), berlin);
  const std::vector<LedgerRow> rows =
      LedgerRows(kOwner, ClosedMeter(start, start + 5 * kSecondUs), {Pool("h200", 4, 1)}, berlin);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].month, "2025-12");
  EXPECT_EQ(rows[0].gpu_ms, 2000 * 4);
  EXPECT_EQ(rows[1].month, "2026-01");
  EXPECT_EQ(rows[1].gpu_ms, 3000 * 4);
  EXPECT_EQ(rows[0].end_unix_ms, rows[1].start_unix_ms);
}

TEST(LedgerRows, AnEndOnTheBoundaryLeavesNoEmptyRow) {
  const int64_t end = Micros(absl::CivilSecond(2026, 2, 1), absl::UTCTimeZone());
  const std::vector<LedgerRow> rows =
      LedgerRows(kOwner, ClosedMeter(end - kSecondUs, end), {Pool("a", 1, 1)}, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].month, "2026-01");
}

TEST(LedgerRows, AnEmptyIntervalStillHasItsRow) {
  const std::vector<LedgerRow> rows = LedgerRows(kOwner, ClosedMeter(0, 0), {Pool("a", 1, 1)}, absl::UTCTimeZone());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].gpu_ms, 0);
}

// Asuncion had no 2000-10-01 00:00: clocks went forward at that moment.
TEST(LedgerRows, AMonthWhoseFirstMidnightIsSkippedBeginsAtTheSkip) {
  const absl::TimeZone asuncion = Zone("America/Asuncion");
  ASSERT_EQ(asuncion.At(absl::CivilSecond(2000, 10, 1)).kind, absl::TimeZone::TimeInfo::SKIPPED);
  const int64_t skip = Micros(absl::CivilSecond(2000, 10, 1), asuncion);
  const std::vector<LedgerRow> rows =
      LedgerRows(kOwner, ClosedMeter(skip - kSecondUs, skip + kSecondUs), {Pool("a", 1, 1)}, asuncion);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].month, "2000-09");
  EXPECT_EQ(rows[1].month, "2000-10");
  EXPECT_EQ(rows[0].gpu_ms, 1000);
  EXPECT_EQ(rows[1].gpu_ms, 1000);
}

// In St. John's clocks went back from 2009-11-01 00:01 to 23:01 of the day before: that hour belongs to
// the month that had begun.
TEST(LedgerRows, AMonthWhoseFirstMidnightHappensTwiceBeginsOnce) {
  const absl::TimeZone st_johns = Zone("America/St_Johns");
  ASSERT_EQ(st_johns.At(absl::CivilSecond(2009, 11, 1)).kind, absl::TimeZone::TimeInfo::REPEATED);
  const int64_t midnight = Micros(absl::CivilSecond(2009, 11, 1), st_johns);
  const int64_t minute = 60 * kSecondUs;
  const std::vector<LedgerRow> rows =
      LedgerRows(kOwner, ClosedMeter(midnight - minute, midnight + 180 * minute), {Pool("a", 1, 1)}, st_johns);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].month, "2009-10");
  EXPECT_EQ(rows[0].gpu_ms, 60'000);
  EXPECT_EQ(rows[1].month, "2009-11");

  // 23:30 for the second time.
  const std::vector<LedgerRow> repeated =
      LedgerRows(kOwner, ClosedMeter(midnight + 30 * minute, midnight + 31 * minute), {Pool("a", 1, 1)}, st_johns);
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].month, "2009-11");
}

TEST(LedgerRows, PartsSumToTheWhole) {
  std::mt19937_64 random(20260101);
  const std::vector<absl::TimeZone> zones = {absl::UTCTimeZone(), Zone("Europe/Berlin"), Zone("America/Asuncion"),
                                             Zone("Asia/Kathmandu"), Zone("Pacific/Apia")};
  for (int i = 0; i < 2000; ++i) {
    const int64_t start = static_cast<int64_t>(random() % 2'000'000'000'000'000);
    const int64_t length = static_cast<int64_t>(random() % 20'000'000'000'000);  // up to 231 days
    const Meter meter = ClosedMeter(start, start + length);
    std::vector<PoolPlacement> pools;
    for (uint64_t p = 0; p <= random() % 3; ++p) {
      pools.push_back(Pool("s", static_cast<int>(random() % 9), 1 + random() % 4));
    }
    const std::vector<LedgerRow> rows = LedgerRows(kOwner, meter, pools, zones[random() % zones.size()]);
    std::vector<int64_t> gpu_ms(pools.size());
    std::set<std::pair<int32_t, std::string>> once;
    for (const LedgerRow& row : rows) {
      gpu_ms[static_cast<size_t>(row.pool)] += row.gpu_ms;
      EXPECT_EQ(row.gpu_ms, (row.end_unix_ms - row.start_unix_ms) * row.cards);
      EXPECT_TRUE(once.emplace(row.pool, row.month).second);
    }
    for (size_t p = 0; p < pools.size(); ++p) EXPECT_EQ(gpu_ms[p], MeteredMs(meter) * pools[p].cards());
  }
}

// --- Hashed bytes ---------------------------------------------------------------------------------

TEST(HashedBytes, TellsNeighbouringFieldsApart) {
  LedgerRow a;
  a.owner = "ab";
  a.project = "c";
  LedgerRow b;
  b.owner = "a";
  b.project = "bc";
  EXPECT_NE(HashedBytes(a), HashedBytes(b));
}

TEST(HashedBytes, StaysAsItIs) {
  LedgerRow row;
  row.seq = 1;
  row.owner = "ana";
  row.gpu_ms = -5;
  row.hash = "not covered";
  EXPECT_EQ(HashedBytes(row), "11:tp-ledger-11:11:01:01:01:00:0:3:ana0:0:1:01:01:02:-51:01:00:0:");
}

}  // namespace
}  // namespace tp::core
