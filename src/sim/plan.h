// What befalls one attempt in the hidden truth, drawn when its launch call is made. The loop never
// sees this, only what comes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/options.h"
#include "sim/rng.h"

namespace tp::sim {

enum class Story : uint8_t {
  kClean,   // every rank exits 0
  kFails,   // one rank exits non-zero, the others hang
  kKilled,  // one rank dies of a signal of its own
  kOutOfMemory,
  kCannotStart,  // one rank's command cannot be executed
  kTermFromOutside,
  kRunnerKilled,    // one rank's tree is gone and left no record
  kPreempted,       // the engine sends TERM, later KILL, and says so
  kNodeLost,        // the ranks of one node are gone, and the engine says so
  kDeletedOutside,  // somebody deletes the engine's object: all ranks are gone, without records
  kRecordsLost,     // every rank exits 0, only the engine can say so
  kNoRecords,       // the same, and the start records are lost as well
  kEvictedWaiting,  // before any rank came up
  kImage,
  kNeverUp,     // one rank never comes up
  kClaimError,  // the storage fails the rank at its claim: exit 75
};

struct RankPlan {
  int64_t start_us = 0;  // after the cards were granted
  int64_t claim_us = 0;  // from the claim to the job's first instruction
  int64_t run_us = 0;
  int64_t term_response_us = 0;
  int64_t visibility_us = 0;
  int64_t verify_us = 0;
};

struct Plan {
  Story story = Story::kClean;
  size_t subject = 0;  // the rank it befalls
  int64_t pending_us = 0;
  int64_t linger_us = 0;  // the engine's object holds its cards after every tree is gone
  bool ignores_term = false;
  bool exits_on_warning = false;
  bool term_cancels_starts = false;  // the engine's stop also keeps away ranks that are not up yet
  bool engine_tells = false;         // the engine reports exits that the records tell as well
  int exit_code = 1;
  int term_code = 0;  // after TERM; negative: dies of it
  int signal = 11;
  int64_t denied_from_us = 0;  // the engine denies the object, from its creation on
  int64_t denied_until_us = 0;
  // End records that were lost show this long after tpd first asked for them.
  std::optional<int64_t> late_records_us;
  std::vector<RankPlan> ranks;
};

Plan DrawPlan(const Options& options, size_t ranks, Rng& rng);

}  // namespace tp::sim
