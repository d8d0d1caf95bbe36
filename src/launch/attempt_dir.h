// The attempt directory of docs/launch-contract.md from tpd's side: made before the launch, fenced,
// closed, announced a pause. For every backend whose storage tpd can reach. Thread-safe: no state of
// its own; several launches of one attempt may prepare it at the same time.
//
// Errors: those of base/file.h for storage; any of them means Unknown to a caller that observes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tp/attempt.h"
#include "tp/launch.h"

namespace tp::launch {

// Makes output, results and attempt directory, work/ from the snapshot, spec.json, the overrides and an
// open fence (a closed one stays closed). NOT_FOUND where the snapshot is gone, INVALID_ARGUMENT where the
// spec or the snapshot can never be launched.
absl::Status PrepareAttempt(const LaunchSpec& spec, const std::string& storage_root);

// spec.json: the spec without the values of secret-looking variables.
std::string RenderSpecJson(const LaunchSpec& spec);

// Links attempt.claim for tpd, making the directory where it is missing, and answers by what is found
// under the name afterwards.
FenceResult FenceAttempt(const AttemptTarget& target, const std::string& storage_root);

// Overwrites `fence` in place, so that a rank that reads it at any moment sees one or the other word.
absl::Status CloseFence(const std::string& attempt_dir);

// $TP_PAUSE_FILE.
absl::Status AnnouncePause(const std::string& attempt_dir);

// Tries what claims and records rely on: exclusive create, link, rename, append, fsync. The sentence says
// what the storage at `storage_root` cannot do.
absl::Status ProbeStorage(const std::string& storage_root);

}  // namespace tp::launch
