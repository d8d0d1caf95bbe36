// What an attempt's evidence says: why it is ending, and what its step becomes once nothing is left of
// it (DESIGN 4 and 5.1). Reads values, changes nothing. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/step.h"

namespace tp::core {

// Every rank of every pool has a start record.
bool AllStarted(const Attempt& attempt);
bool AllEnded(const Attempt& attempt);
// Every rank has a record with code 0, unsignalled; or, without records, the engine's exit 0 of an
// object that owns the claim. Not where the engine says that a node was lost.
bool AllClean(const Attempt& attempt);
// Some rank may still be running, as far as is known.
bool AnyLeft(const Attempt& attempt);

struct Cause {
  EndCause cause = EndCause::kFinished;
  std::optional<Failure> failure;
};
// A reason to end that lies in what was observed, not in what was asked.
std::optional<Cause> ObservedCause(const Attempt& attempt);

// Nothing of the attempt is left and nothing of it can start: it may be left.
bool MayLeave(const Attempt& attempt);

enum class Outcome : uint8_t {
  kSucceeded,
  kFailed,
  kStopped,
  kPaused,
  kPausedAfterFailure,  // a failure with budget left, under a pause
  kResumed,             // its pause was lifted while it was being paused
  kRetried,
  kRelaunched,  // never ran: back to QUEUED, not a retry
};

Outcome Judge(const Step& step, const Policy& policy);

// What FAILED would say. Never without a sentence. What would be the job's own exit is the card's where one of the
// attempt's cards broke under it.
Failure FailureOf(const Attempt& attempt);

// Whether a broken card among its own would name this end otherwise.
bool CardsMayExplain(const Attempt& attempt);

// Whether a failure of this kind may be retried by itself now, and from which budget.
bool RetryAllowed(const Step& step, const Failure& failure, const Policy& policy);

// `exit 0`, `rank 0-1: exit 3`, `rank 0-0: killed by SIGKILL`, `no exit record`.
std::string DescribeExit(const Attempt& attempt);
std::string DescribeRankExit(const EndRecord& record);

}  // namespace tp::core
