// The server's answers as absl::Status, with tp.v1.ErrorDetail kept beside the sentence.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "tp/v1/error.pb.h"

namespace tp::cli {

absl::Status FromGrpc(const grpc::Status& status);

// Empty where the server said nothing more, or the error is our own.
v1::ErrorDetail DetailOf(const absl::Status& status);

}  // namespace tp::cli
