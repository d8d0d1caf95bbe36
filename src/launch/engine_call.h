// What backends that launch through tp-rank make of a call in the same way.
#pragma once

#include "absl/status/status.h"
#include "tp/attempt.h"
#include "tp/backend.h"
#include "tp/launch.h"

namespace tp::launch {

AttemptTarget TargetOf(const LaunchSpec& spec);

// An attempt that could not be laid down on the storage: for good where the paths are wrong, else for now.
LaunchResult RefusalOf(const absl::Status& prepared);

// A level as `tp-rank signal` takes it (docs/launch-contract.md).
const char* SignalWord(StopLevel level);

}  // namespace tp::launch
