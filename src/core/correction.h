// A flagged end in the ledger is corrected once, when the end records that were missing appear (DESIGN 7): what is
// remembered of the attempt until then, and what the correction comes to. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/ids.h"
#include "core/ledger.h"
#include "core/step.h"
#include "tp/attempt.h"
#include "tp/observation.h"

namespace tp::core {

// What is owed to the ledger for one attempt that was left without its end records. Complete, so that it needs no
// run in memory.
struct Correction {
  AttemptRef attempt;
  std::string owner;
  std::string project;
  std::string backend;
  AttemptTarget target;
  std::vector<PoolPlacement> placement;
  std::vector<RankObservation> ranks;  // as known so far
  Meter meter;                         // as it was billed
  absl::Time created_at;               // when the attempt was left
  bool operator==(const Correction&) const = default;
};

// After this long a record that has not appeared is not waited for any more.
inline constexpr absl::Duration kCorrectionLasts = absl::Hours(24 * 7);

// Whether a record that is still missing may change what the meter was closed at.
bool AwaitsRecords(const Meter& meter, const std::vector<RankObservation>& ranks);

// How long after a look that found nothing the next one comes, by how old the correction is then: seldom, and ever
// more so.
absl::Duration NextCorrectionLook(absl::Duration age);

// Takes end records that were missing out of `seen`; whether there were any.
bool TakeRecords(Correction& correction, const Observation& seen);

// Every rank's end record is known.
bool IsComplete(const Correction& correction);

// What the ledger lacks, or has too much of, now that the correction is complete; without seq and hashes.
std::vector<LedgerRow> CorrectionRows(const Correction& correction, absl::TimeZone zone);

}  // namespace tp::core
