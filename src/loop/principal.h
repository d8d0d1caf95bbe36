// What a principal may do to a run, and as whom they do it. Pure.
#pragma once

#include <string_view>

#include "base/status.h"
#include "core/revision.h"
#include "core/run.h"
#include "loop/commands.h"

namespace tp::loop {

// PERMISSION_DENIED unless the run is theirs, or they are an operator or admin.
inline absl::Status CheckMayChange(const Principal& who, const core::Run& run) {
  if (who.at_least(store::Role::kOperator)) return absl::OkStatus();
  if (who.user == run.owner && who.at_least(store::Role::kUser)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied, "{} may not change run {} of {}: ask its owner, or an operator",
               who.user, run.id(), run.owner);
}

// `what` completes "may not ..."; PERMISSION_DENIED.
inline absl::Status CheckAdmin(const Principal& who, std::string_view what) {
  if (who.at_least(store::Role::kAdmin)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied, "{} may not {}: only admins can", who.user, what);
}

inline core::Reviser ReviserOf(const Principal& who, const core::Run& run) {
  return {.is_owner = who.user == run.owner, .is_operator = who.at_least(store::Role::kOperator)};
}

}  // namespace tp::loop
