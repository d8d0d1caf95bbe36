// Who may call what. One row a method; a test walks the service descriptors and fails for a method
// without a row.
//
// What a caller may see: everyone sees runs, their states, events and usage, since people share the
// cards; what a job wrote (logs, results, metrics) and its environment belong to its owner, operators
// and admins (environment: owner and admins). The queue shows what waits ahead by its size, names only to
// owner, operators and admins. Who may steer a run is decided by the loop.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "auth/identity.h"

namespace tp::auth {

// `method` as gRPC writes it: /tp.v1.RunService/SubmitRun. Nothing: unknown, refuse it.
std::optional<store::Role> RequiredRole(std::string_view method);

// PERMISSION_DENIED names the role that is missing.
absl::Status CheckMayCall(const Identity& caller, std::string_view method);

bool MayReadContent(const Identity& caller, std::string_view owner);
bool MayReadEnvironment(const Identity& caller, std::string_view owner);
bool MayReadNameInQueue(const Identity& caller, std::string_view owner);
bool MayReadStanding(const Identity& caller, std::string_view user);

}  // namespace tp::auth
