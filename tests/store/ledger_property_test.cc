// Random histories: what the ledger says of months, days and people against an oracle that knows nothing of
// rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "author.h"
#include "core/ledger.h"
#include "store/memory_store.h"
#include "store/usage.h"

namespace tp::store {
namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kHourMs = 60 * kMinuteMs;
constexpr int64_t kDayMs = 24 * kHourMs;

const std::vector<std::string> kZones = {"UTC",
                                         "Europe/Berlin",
                                         "America/New_York",
                                         "America/St_Johns",     // at 00:01 until 2011, on a first of the month too
                                         "America/Asuncion",     // at midnight, on a first of the month too
                                         "America/Havana",       // at 01:00, back to midnight
                                         "Australia/Lord_Howe",  // by half an hour
                                         "Asia/Kathmandu",       // +05:45
                                         "Africa/Casablanca",    // by the moon
                                         "Pacific/Apia"};        // left a day out

// Months by the zone's clock, read minute by minute: one begins when the clock first shows it.
class MonthOracle {
 public:
  explicit MonthOracle(const std::string& zone) { EXPECT_TRUE(absl::LoadTimeZone(zone, &zone_)) << zone; }

  int64_t BeginsMs(absl::CivilMonth month) {
    const auto [known, added] = begins_ms_.try_emplace(month, 0);
    if (!added) return known->second;
    const absl::Time utc = absl::FromCivil(absl::CivilSecond(month), absl::UTCTimeZone());
    int64_t at = absl::ToUnixMillis(utc) - 30 * kHourMs;
    while (absl::CivilMonth(zone_.At(absl::FromUnixMillis(at)).cs) < month) at += kMinuteMs;
    return known->second = at;
  }

  const absl::TimeZone& zone() const { return zone_; }

 private:
  absl::TimeZone zone_;
  std::map<absl::CivilMonth, int64_t> begins_ms_;
};

int64_t Overlap(int64_t from, int64_t to, int64_t begins, int64_t ends) {
  return std::max<int64_t>(0, std::min(to, ends) - std::max(from, begins));
}

std::string NameOf(absl::CivilMonth month) {
  return absl::FormatTime("%Y-%m", absl::FromCivil(absl::CivilSecond(month), absl::UTCTimeZone()), absl::UTCTimeZone());
}

// What was held, from when to when.
struct Held {
  std::string owner;
  std::string series;
  int64_t run = 0;
  int64_t cards = 0;
  int64_t from_ms = 0;
  int64_t to_ms = 0;
};

using Sums = std::map<std::string, int64_t>;

class History {
 public:
  History(uint64_t seed, MonthOracle& oracle) : random_(seed), oracle_(oracle) {
    for (int64_t run = 1; run <= 1 + static_cast<int64_t>(random_() % 6); ++run) AddAttempt(run);
    EXPECT_TRUE(store_.Commit(author_.Take()).ok());
  }

  MemoryStore& store() { return store_; }
  const std::vector<Held>& held() const { return held_; }
  std::mt19937_64& random() { return random_; }

  Sums Expected(const std::function<std::string(const Held&)>& key, int64_t from_ms, int64_t to_ms) const {
    Sums sums;
    for (const Held& held : held_) sums[key(held)] += Overlap(held.from_ms, held.to_ms, from_ms, to_ms) * held.cards;
    return WithoutNothing(sums);
  }

  Sums ExpectedByMonth() {
    Sums sums;
    for (const Held& held : held_) {
      const absl::CivilMonth first(absl::ToCivilMonth(absl::FromUnixMillis(held.from_ms), absl::UTCTimeZone()) - 1);
      for (absl::CivilMonth month = first; oracle_.BeginsMs(month) < held.to_ms; ++month) {
        sums[NameOf(month)] +=
            Overlap(held.from_ms, held.to_ms, oracle_.BeginsMs(month), oracle_.BeginsMs(month + 1)) * held.cards;
      }
    }
    return WithoutNothing(sums);
  }

  Sums Reported(UsageKey by, const UsageFilter& filter = {}) {
    Sums sums;
    const auto rows = store_.Usage(filter, by);
    EXPECT_TRUE(rows.ok()) << rows.status();
    for (const UsageRow& row : *rows) sums[row.key] += row.gpu_ms;
    return WithoutNothing(sums);
  }

  static Sums WithoutNothing(Sums sums) {
    std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
    return sums;
  }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  // Anywhere in sixteen years, or by the beginning of a month, rather of one that begins with a clock change.
  int64_t Start() {
    constexpr int64_t k2008Ms = 1'199'145'600'000;
    static const std::vector<absl::CivilMonth> kOdd = {absl::CivilMonth(2009, 11), absl::CivilMonth(2015, 11),
                                                       absl::CivilMonth(2017, 10)};
    if (Below(2) == 0) return k2008Ms + Below(16 * 365 * kDayMs);
    const absl::CivilMonth month =
        Below(2) == 0 ? kOdd[random_() % kOdd.size()] : absl::CivilMonth(2008, 1) + Below(16 * 12);
    return oracle_.BeginsMs(month) - 2 * kHourMs + Below(4 * kHourMs);
  }

  void AddAttempt(int64_t run) {
    const int64_t from_ms = Start();
    const int64_t length_ms = Below(3) == 0 ? Below(kHourMs) : Below(120 * kDayMs);
    std::vector<PoolPlacement> pools(1 + random_() % 3);
    for (PoolPlacement& pool : pools) {
      pool.series = Below(2) == 0 ? "h200" : "a100";
      pool.gpus_per_node = static_cast<int>(Below(9));
      pool.ranks.resize(1 + random_() % 8);
    }
    core::Meter meter;
    meter.opened.unix_us = from_ms * 1000 + Below(1000);
    meter.closed_unix_us = meter.opened.unix_us + length_ms * 1000 + Below(1000);
    meter.flagged = Below(3) == 0;
    const std::string owner = Below(2) == 0 ? "ana" : "ben";
    const core::LedgerOwner of{{run, 0}, 1, owner, "lab"};
    std::vector<core::LedgerRow> rows = core::LedgerRows(of, meter, pools, oracle_.zone());
    for (const PoolPlacement& pool : pools) {
      held_.push_back({owner, pool.series, run, pool.cards(), from_ms, from_ms + length_ms});
    }
    for (core::LedgerRow& row : rows) row = author_.Bill(row);
    if (meter.flagged) Correct(of, meter, pools);
  }

  // The true end was earlier or later, by any number of months.
  void Correct(const core::LedgerOwner& of, const core::Meter& flagged, const std::vector<PoolPlacement>& pools) {
    core::Meter corrected = flagged;
    corrected.flagged = false;
    corrected.closed_unix_us = flagged.opened.unix_us + Below(Below(2) == 0 ? kHourMs : 120 * kDayMs) * 1000;
    for (const core::LedgerRow& row : core::DeltaRows(of, flagged, corrected, pools, oracle_.zone())) author_.Bill(row);
    for (size_t pool = 0; pool < pools.size(); ++pool) {
      Held& held = held_[held_.size() - pools.size() + pool];
      held.to_ms = held.from_ms + core::MeteredMs(corrected);
    }
  }

  std::mt19937_64 random_;
  MonthOracle& oracle_;
  Author author_;
  MemoryStore store_;
  std::vector<Held> held_;
};

TEST(LedgerProperty, PartsSumToTheWholeAndMonthsAreExact) {
  constexpr uint64_t kHistories = 1000;
  const auto owner_of = [](const Held& held) { return held.owner; };
  const auto series_of = [](const Held& held) { return held.series; };
  const auto run_of = [](const Held& held) { return std::to_string(held.run); };
  constexpr int64_t kFirst = 0;
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  std::vector<MonthOracle> oracles(kZones.begin(), kZones.end());
  for (uint64_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " in " + kZones[seed % kZones.size()]);
    History history(seed, oracles[seed % oracles.size()]);
    ASSERT_EQ(history.Reported(UsageKey::kMonth), history.ExpectedByMonth());
    ASSERT_EQ(history.Reported(UsageKey::kUser), history.Expected(owner_of, kFirst, kLast));
    ASSERT_EQ(history.Reported(UsageKey::kSeries), history.Expected(series_of, kFirst, kLast));
    ASSERT_EQ(history.Reported(UsageKey::kRun), history.Expected(run_of, kFirst, kLast));

    // Cut anywhere, and by the days of UTC.
    const Held& held = history.held()[history.random()() % history.held().size()];
    const int64_t cut_ms = held.from_ms + static_cast<int64_t>(history.random()() % (130 * kDayMs));
    const absl::Time cut = absl::FromUnixMillis(cut_ms);
    ASSERT_EQ(history.Reported(UsageKey::kUser, {.to = cut}), history.Expected(owner_of, kFirst, cut_ms));
    ASSERT_EQ(history.Reported(UsageKey::kUser, {.from = cut}), history.Expected(owner_of, cut_ms, kLast));
    Sums days;
    for (const auto& [day, gpu_ms] : history.Reported(UsageKey::kDay)) days["all"] += gpu_ms;
    ASSERT_EQ(History::WithoutNothing(days), history.Expected([](const Held&) { return "all"; }, kFirst, kLast));

    const absl::Status sound = CheckLedger(history.store());
    ASSERT_TRUE(sound.ok()) << sound;
    const absl::Status corrected = CheckCorrections(history.store());
    ASSERT_TRUE(corrected.ok()) << corrected;
  }
}

}  // namespace
}  // namespace tp::store
