// Errors on their way to a client: the same code, the same sentence, and an ErrorDetail for programs.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tp::api {

grpc::Status ToGrpc(const absl::Status& status);

}  // namespace tp::api
