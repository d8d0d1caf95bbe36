// What `tp` tells its caller. Part of the public interface: docs/cli.md.
#pragma once

#include "absl/status/status.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

enum class ExitCode : int {
  kOk = 0,  // also: SUCCEEDED
  kFailed = 1,
  kUsage = 2,        // also: a local file or directory that tp cannot use
  kUnreachable = 3,  // no usable answer from the server
  kNotFound = 4,
  kDenied = 5,
  kStopped = 6,
  kWaitTimeout = 7,
  kPartial = 8,
  kConflict = 9,
  kInterrupted = 130,
};

// Of a status that is not OK. Never kFailed: that word is kept for runs.
ExitCode ExitCodeOf(absl::StatusCode code);

// Of a run that has ended; kOk for one that has not.
ExitCode ExitCodeOf(v1::RunState state);

}  // namespace tp::cli
