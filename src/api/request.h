// From what a client sent to what the loop is asked: every rule about a request's form lives here.
// Errors are INVALID_ARGUMENT and name the field. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/notice.h"
#include "loop/commands.h"
#include "store/store.h"
#include "tp/v1/run.pb.h"
#include "tp/v1/usage.pb.h"

namespace tp::api {

// Unspecified: success.
absl::StatusOr<core::AfterWhen> ParseWhen(const std::string& field, v1::AfterWhen when);

// Without the runs that it comes after, which are to be found first, and without `notify`.
absl::StatusOr<loop::SubmitRun> ParseSubmit(const v1::SubmitRunRequest& request);

// Who is to be told, of those that there are.
absl::StatusOr<std::vector<core::Notice>> ParseNotices(const v1::SubmitRunRequest& request,
                                                       const core::Receivers& receivers);

// 1 to 128 printable ASCII characters.
absl::Status CheckRequestId(std::string_view request_id);

// SHA-256 of the method and everything that was sent, as hex.
std::string BodySha256(std::string_view method, const google::protobuf::Message& request);

// The bytes of a message, the same for equal messages.
std::string DeterministicBytes(const google::protobuf::Message& message);

absl::StatusOr<store::RunFilter> ParseRunFilter(const v1::ListRunsRequest& request);

// 0: the default; what is above the largest page is cut.
absl::StatusOr<int> ParsePageSize(int32_t page_size);

// 64 lower-case hex digits.
absl::Status CheckSha256(std::string_view field, std::string_view text);

}  // namespace tp::api
