// Takes an observation into an attempt: records are only ever added, the claim is only ever found.
// Decides nothing. Pure.
#pragma once

#include "absl/time/time.h"
#include "core/step.h"
#include "tp/observation.h"

namespace tp::core {

// An attempt with one entry for every rank of its placement, in (pool, rank) order.
std::vector<RankObservation> EmptyRanks(const std::vector<PoolPlacement>& placement);

void FoldObservation(Step& step, const Observation& observation, absl::Time now, const Policy& policy);

// tpd has just started: time without it counts for no deadline, as time under Unknown does not.
void FoldRestart(Step& step);

// tpd's real-time clock was set by `by`. What counts from a moment or up to one goes on as if it had not
// been; stamps of what happened stay as they were written.
void FoldClockSet(Step& step, absl::Duration by);

// The job has until `escalate_at` to end by itself. That goes on only while the job can be seen.
bool InGrace(const Ending& ending);

// What must be written down although no row of the table was taken: new records, a found claim, a
// change of what is shown, running time not yet saved.
bool WorthSaving(const Step& before, const Step& after);

}  // namespace tp::core
