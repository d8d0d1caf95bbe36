#include "core/ledger.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "absl/time/civil_time.h"

namespace tp::core {
namespace {

constexpr int64_t kUsPerMs = 1000;

// No attempt is metered for longer: a later end is a damaged or forged stamp.
constexpr int64_t kLongestUs = int64_t{10} * 366 * 24 * 3600 * 1'000'000;

// Changes whenever the fields or their order do: a row's hash says by which rule it was made.
constexpr std::string_view kHashFormat = "tp-ledger-1";

bool SameBoot(const HostStamp& a, const HostStamp& b) { return !a.boot_id.empty() && a.boot_id == b.boot_id; }

// Stamps come from files within reach of the job: whatever they say, sums of them stay defined.
int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}

int64_t SaturatingSubtract(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? INT64_MAX : INT64_MIN;
}

// `later` on the real-time clock that `earlier` was read from.
int64_t UnixUsAfter(const HostStamp& earlier, const HostStamp& later) {
  return SaturatingAdd(earlier.unix_us, SaturatingSubtract(later.boot_us, earlier.boot_us));
}

// A stamp of `rank` on the clock of meter.opened: by the boot clock where one boot saw both ends, else
// by the boot clock since the rank's own start, else by real time as the host had it.
int64_t OnMeterClock(const Meter& meter, const RankObservation& rank, const HostStamp& stamp) {
  if (SameBoot(meter.opened, stamp)) return UnixUsAfter(meter.opened, stamp);
  if (rank.started && SameBoot(rank.started->at, stamp)) return UnixUsAfter(rank.started->at, stamp);
  return stamp.unix_us;
}

std::string RankOfPool(const RankObservation& rank) { return fmt::format("pool {} rank {}", rank.pool, rank.rank); }

// The latest of several moments, with where it comes from; of equal ones the first.
struct Latest {
  std::optional<int64_t> unix_us;
  std::string evidence;

  void Add(int64_t candidate_unix_us, std::string_view what) {
    if (unix_us && *unix_us >= candidate_unix_us) return;
    unix_us = candidate_unix_us;
    evidence = what;
  }
};

Latest LastEnd(const Meter& meter, const std::vector<RankObservation>& ranks) {
  Latest latest;
  for (const RankObservation& rank : ranks) {
    if (!rank.ended) continue;
    latest.Add(OnMeterClock(meter, rank, rank.ended->at), "end record of " + RankOfPool(rank));
  }
  return latest;
}

void AddSigns(Latest& latest, const Meter& meter, const std::vector<RankObservation>& ranks,
              std::optional<absl::Time> last_sighting) {
  for (const RankObservation& rank : ranks) {
    if (!rank.heartbeat) continue;
    latest.Add(OnMeterClock(meter, rank, rank.heartbeat->at), "last heartbeat of " + RankOfPool(rank));
  }
  if (!last_sighting) return;
  latest.Add(SaturatingAdd(meter.opened.unix_us, absl::ToInt64Microseconds(*last_sighting - meter.seen_at)),
             "last sighting");
}

// --- Months ---------------------------------------------------------------------------------------

struct MonthPart {
  std::string month;
  int64_t start_unix_ms = 0;
  int64_t end_unix_ms = 0;
};

// Where local midnight happens twice the first one counts, where it is skipped the moment of the skip.
int64_t MonthStartMs(absl::CivilMonth month, absl::TimeZone zone) {
  return absl::ToUnixMillis(absl::FromCivil(absl::CivilSecond(month), zone));
}

// Months follow each other at their starts; the local date alone would name a month twice where
// clocks go back over its first midnight.
absl::CivilMonth MonthAt(int64_t unix_ms, absl::TimeZone zone) {
  absl::CivilMonth month = absl::ToCivilMonth(absl::FromUnixMillis(unix_ms), zone);
  while (MonthStartMs(month + 1, zone) <= unix_ms) ++month;
  return month;
}

std::string MonthName(absl::CivilMonth month) { return fmt::format("{:04}-{:02}", month.year(), month.month()); }

// [start, end) cut at the starts of months; one empty part for an empty interval.
std::vector<MonthPart> SplitByMonth(int64_t start_unix_ms, int64_t end_unix_ms, absl::TimeZone zone) {
  std::vector<MonthPart> parts;
  int64_t at = start_unix_ms;
  for (absl::CivilMonth month = MonthAt(at, zone);; ++month) {
    const int64_t until = std::min(end_unix_ms, MonthStartMs(month + 1, zone));
    parts.push_back({MonthName(month), at, until});
    at = until;
    if (at >= end_unix_ms) return parts;
  }
}

// From one moment to the other, backwards where that is the earlier one; the first part begins at `from`.
std::vector<MonthPart> PartsBetween(int64_t from_unix_ms, int64_t to_unix_ms, absl::TimeZone zone) {
  if (from_unix_ms <= to_unix_ms) return SplitByMonth(from_unix_ms, to_unix_ms, zone);
  std::vector<MonthPart> parts = SplitByMonth(to_unix_ms, from_unix_ms, zone);
  std::reverse(parts.begin(), parts.end());
  for (MonthPart& part : parts) std::swap(part.start_unix_ms, part.end_unix_ms);
  return parts;
}

std::vector<LedgerRow> RowsOf(const LedgerOwner& owner, const std::vector<MonthPart>& parts,
                              const std::vector<PoolPlacement>& pools) {
  std::vector<LedgerRow> rows;
  for (size_t pool = 0; pool < pools.size(); ++pool) {
    for (const MonthPart& part : parts) {
      LedgerRow row;
      row.run = owner.step.run;
      row.step = owner.step.step;
      row.attempt = owner.attempt;
      row.pool = static_cast<int32_t>(pool);
      row.series = pools[pool].series;
      row.profile = pools[pool].profile;
      row.owner = owner.owner;
      row.project = owner.project;
      row.month = part.month;
      row.cards = pools[pool].cards();
      row.start_unix_ms = part.start_unix_ms;
      row.end_unix_ms = part.end_unix_ms;
      row.gpu_ms = (part.end_unix_ms - part.start_unix_ms) * row.cards;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

int64_t StartUnixMs(const Meter& meter) { return meter.opened.unix_us / kUsPerMs; }

// --- Hashing --------------------------------------------------------------------------------------

void AppendField(std::string& bytes, std::string_view field) {
  bytes += fmt::format("{}:", field.size());
  bytes += field;
}

void AppendField(std::string& bytes, int64_t field) { AppendField(bytes, std::string_view(fmt::format("{}", field))); }

}  // namespace

Meter OpenMeter(const std::vector<RankObservation>& ranks, absl::Time now) {
  Meter meter;
  meter.seen_at = now;
  const HostStamp* last = nullptr;
  for (const RankObservation& rank : ranks) {
    if (rank.started && (last == nullptr || last->unix_us < rank.started->at.unix_us)) last = &rank.started->at;
  }
  if (last != nullptr) meter.opened = *last;
  return meter;
}

void CloseMeter(Meter& meter, const std::vector<RankObservation>& ranks, std::optional<absl::Time> last_sighting) {
  const auto silent =
      std::find_if(ranks.begin(), ranks.end(), [](const RankObservation& rank) { return !rank.ended.has_value(); });
  meter.flagged = silent != ranks.end() || ranks.empty();
  Latest latest = LastEnd(meter, ranks);
  if (meter.flagged) AddSigns(latest, meter, ranks, last_sighting);
  if (!latest.unix_us) latest.Add(meter.opened.unix_us, "its start: nothing was seen of it since");

  const int64_t bound = SaturatingAdd(meter.opened.unix_us, kLongestUs);
  meter.closed_unix_us = std::clamp(*latest.unix_us, meter.opened.unix_us, bound);
  meter.evidence = silent == ranks.end()
                       ? latest.evidence
                       : fmt::format("no end record of {}; closed at {}", RankOfPool(*silent), latest.evidence);
  if (*latest.unix_us > bound) {
    meter.flagged = true;
    meter.evidence += ", which is not plausible: cut off after ten years";
  }
}

int64_t MeteredMs(const Meter& meter) {
  if (!meter.closed_unix_us) return 0;
  return std::max<int64_t>(0, SaturatingSubtract(*meter.closed_unix_us, meter.opened.unix_us) / kUsPerMs);
}

Month MonthOf(absl::Time at, absl::TimeZone zone) {
  const absl::CivilMonth month = MonthAt(absl::ToUnixMillis(at), zone);
  return {MonthName(month), absl::FromUnixMillis(MonthStartMs(month, zone)),
          absl::FromUnixMillis(MonthStartMs(month + 1, zone))};
}

std::vector<LedgerRow> LedgerRows(const LedgerOwner& owner, const Meter& meter, const std::vector<PoolPlacement>& pools,
                                  absl::TimeZone zone) {
  const int64_t start_unix_ms = StartUnixMs(meter);
  std::vector<LedgerRow> rows =
      RowsOf(owner, SplitByMonth(start_unix_ms, start_unix_ms + MeteredMs(meter), zone), pools);
  for (LedgerRow& row : rows) {
    row.flagged = meter.flagged;
    row.evidence = meter.evidence;
  }
  return rows;
}

std::vector<LedgerRow> DeltaRows(const LedgerOwner& owner, const Meter& flagged, const Meter& corrected,
                                 const std::vector<PoolPlacement>& pools, absl::TimeZone zone) {
  const int64_t start_unix_ms = StartUnixMs(flagged);
  std::vector<LedgerRow> rows = RowsOf(
      owner, PartsBetween(start_unix_ms + MeteredMs(flagged), start_unix_ms + MeteredMs(corrected), zone), pools);
  for (LedgerRow& row : rows) {
    row.delta = true;
    row.flagged = corrected.flagged;
    row.evidence = corrected.evidence;
  }
  return rows;
}

std::string HashedBytes(const LedgerRow& row) {
  std::string bytes;
  AppendField(bytes, kHashFormat);
  AppendField(bytes, row.seq);
  AppendField(bytes, row.run);
  AppendField(bytes, row.step);
  AppendField(bytes, row.attempt);
  AppendField(bytes, row.pool);
  AppendField(bytes, row.series);
  AppendField(bytes, row.profile);
  AppendField(bytes, row.owner);
  AppendField(bytes, row.project);
  AppendField(bytes, row.month);
  AppendField(bytes, row.cards);
  AppendField(bytes, row.start_unix_ms);
  AppendField(bytes, row.end_unix_ms);
  AppendField(bytes, row.gpu_ms);
  AppendField(bytes, static_cast<int64_t>(row.flagged));
  AppendField(bytes, static_cast<int64_t>(row.delta));
  AppendField(bytes, row.evidence);
  AppendField(bytes, row.previous_hash);
  return bytes;
}

}  // namespace tp::core
