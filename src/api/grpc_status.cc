#include "api/grpc_status.h"

#include <string>
#include <string_view>

#include "api/errors.h"
#include "base/status.h"
#include "tp/v1/error.pb.h"

namespace tp::api {
namespace {

// Status travels in HTTP/2 trailers, which are limited to some kilobytes.
constexpr size_t kMaxSentence = 2000;

std::string Sentence(const absl::Status& status) {
  const std::string_view message = Message(status);
  return message.size() <= kMaxSentence ? std::string(message) : fmt::format("{} ...", message.substr(0, kMaxSentence));
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail;
  detail.set_reason(ReasonOf(status));
  detail.set_field(FieldOf(status));
  if (detail.reason().empty()) detail.set_reason(absl::StatusCodeToString(status.code()));
  // Both enumerations are the canonical codes.
  return {static_cast<grpc::StatusCode>(status.code()), Sentence(status), detail.SerializeAsString()};
}

}  // namespace tp::api
