// Statuses with a formatted sentence. Every message names what failed, where, and what to do.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strings.h"

namespace tp {

template <typename... Args>
absl::Status Error(absl::StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return absl::Status(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

template <typename... Args>
absl::Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kNotFound, format, std::forward<Args>(args)...);
}

template <typename... Args>
absl::Status FailedPrecondition(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kFailedPrecondition, format, std::forward<Args>(args)...);
}

template <typename... Args>
absl::Status Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kUnavailable, format, std::forward<Args>(args)...);
}

template <typename... Args>
absl::Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kInternal, format, std::forward<Args>(args)...);
}

}  // namespace tp

// Returns the status from the enclosing function unless it is OK.
#define TP_RETURN_IF_ERROR(expression)                                               \
  do {                                                                               \
    if (absl::Status tp_status_ = (expression); !tp_status_.ok()) return tp_status_; \
  } while (false)

#define TP_CONCAT_INNER_(a, b) a##b
#define TP_CONCAT_(a, b) TP_CONCAT_INNER_(a, b)

// TP_ASSIGN_OR_RETURN(auto value, Call()): the value, or returns its status.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration can't stand in parentheses.
#define TP_ASSIGN_OR_RETURN(declaration, expression) \
  TP_ASSIGN_OR_RETURN_(TP_CONCAT_(tp_result_, __LINE__), declaration, expression)
#define TP_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return result.status();                   \
  declaration = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
