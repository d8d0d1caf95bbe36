// gpu_seconds as exact integers (DESIGN 7): intervals, their split by pool and month, and the hash
// chain over the rows. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/step.h"

namespace tp::core {

// A month of the accounting zone: [begins, ends).
struct Month {
  std::string name;  // YYYY-MM
  absl::Time begins;
  absl::Time ends;
};
Month MonthOf(absl::Time at, absl::TimeZone zone);

// One row of the append-only ledger: one pool of one attempt within one month.
struct LedgerRow {
  int64_t seq = 0;
  int64_t run = 0;
  int32_t step = 0;
  int32_t attempt = 0;
  int32_t pool = 0;
  std::string series;
  std::string profile;
  std::string owner;
  std::string project;
  std::string month;  // YYYY-MM in accounting.timezone
  int64_t cards = 0;
  int64_t start_unix_ms = 0;
  int64_t end_unix_ms = 0;
  int64_t gpu_ms = 0;  // (end - start) x cards; negative only in a delta row
  bool flagged = false;
  bool delta = false;
  std::string evidence;
  std::string previous_hash;  // hex SHA-256; empty in the first row
  std::string hash;           // over every other field
  bool operator==(const LedgerRow&) const = default;
};

// Opens at the last rank's start record. Needs a start record of every rank. `now` is tpd's clock.
Meter OpenMeter(const std::vector<RankObservation>& ranks, absl::Time now);

// Closes at the last rank's end record; durations come from the boot clock within one boot. Without an
// end record of every rank: at the last heartbeat or sighting, whichever is later, flagged. Sightings are
// on tpd's clock, which need not agree with the hosts': their distance from meter.seen_at counts.
void CloseMeter(Meter& meter, const std::vector<RankObservation>& ranks, std::optional<absl::Time> last_sighting);

// Wall milliseconds of a closed meter, never negative.
int64_t MeteredMs(const Meter& meter);

// The rows of a closed meter, without seq and hashes: one per pool and month, summing exactly to
// MeteredMs x cards.
struct LedgerOwner {
  StepRef step;
  int32_t attempt = 0;
  std::string owner;
  std::string project;
};
std::vector<LedgerRow> LedgerRows(const LedgerOwner& owner, const Meter& meter, const std::vector<PoolPlacement>& pools,
                                  absl::TimeZone zone);

// What a flagged end was wrong by: from where `flagged` was closed to where `corrected` is, a row per pool and
// month, backwards and negative where too much was billed. With the rows of `flagged` they sum exactly to the
// rows of `corrected`. Both meters opened alike.
std::vector<LedgerRow> DeltaRows(const LedgerOwner& owner, const Meter& flagged, const Meter& corrected,
                                 const std::vector<PoolPlacement>& pools, absl::TimeZone zone);

// The full hour in which something ended: as of then use counts in a share, so that it is the same whether it
// was told one by one or summed up by the hour.
inline constexpr int64_t kHourMs = 3'600'000;
inline int64_t EndHourUnixMs(int64_t end_unix_ms) { return end_unix_ms - end_unix_ms % kHourMs; }

// The bytes that `hash` covers: every field but `hash`, each with its length in front.
std::string HashedBytes(const LedgerRow& row);

}  // namespace tp::core
