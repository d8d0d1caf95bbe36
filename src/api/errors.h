// Errors on their way to a client: the same code, the same sentence, and an ErrorDetail for programs.
#pragma once

#include <string_view>
#include <utility>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "base/status.h"

namespace tp::api {

// `reason`: a stable word, e.g. RUN_NOT_FOUND. `field`: of the request.
absl::Status WithReason(absl::Status status, std::string_view reason);
absl::Status WithField(absl::Status status, std::string_view field);

// INVALID_ARGUMENT about one field of the request.
template <typename... Args>
absl::Status FieldError(std::string_view field, fmt::format_string<Args...> format, Args&&... args) {
  return WithField(InvalidArgument(format, std::forward<Args>(args)...), field);
}

grpc::Status ToGrpc(const absl::Status& status);

}  // namespace tp::api
