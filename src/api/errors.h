// What programs are told besides code and sentence: tp.v1.ErrorDetail, carried by the status.
#pragma once

#include <string>
#include <string_view>
#include <utility>

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

// Empty where nothing was said.
std::string ReasonOf(const absl::Status& status);
std::string FieldOf(const absl::Status& status);

}  // namespace tp::api
