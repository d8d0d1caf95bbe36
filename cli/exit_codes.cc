#include "cli/exit_codes.h"

namespace tp::cli {

ExitCode ExitCodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kDenied;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kConflict;
    default:  // an open enum: absl reserves the right to add codes
      return ExitCode::kUnreachable;
  }
}

ExitCode ExitCodeOf(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_FAILED:
      return ExitCode::kFailed;
    case v1::RUN_STATE_STOPPED:
      return ExitCode::kStopped;
    case v1::RUN_STATE_PARTIAL:
      return ExitCode::kPartial;
    default:  // an open enum: proto3 keeps values of newer servers
      return ExitCode::kOk;
  }
}

}  // namespace tp::cli
