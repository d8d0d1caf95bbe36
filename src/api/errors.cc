#include "api/errors.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "tp/v1/error.pb.h"

namespace tp::api {
namespace {

constexpr std::string_view kReasonPayload = "tp.v1.ErrorDetail.reason";
constexpr std::string_view kFieldPayload = "tp.v1.ErrorDetail.field";
// Status travels in HTTP/2 trailers, which are limited to some kilobytes.
constexpr size_t kMaxSentence = 2000;

std::string Payload(const absl::Status& status, std::string_view name) {
  const auto payload = status.GetPayload(ToAbsl(name));
  return payload ? std::string(*payload) : std::string();
}

std::string Sentence(const absl::Status& status) {
  const std::string_view message = Message(status);
  return message.size() <= kMaxSentence ? std::string(message) : fmt::format("{} ...", message.substr(0, kMaxSentence));
}

}  // namespace

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(ToAbsl(kReasonPayload), absl::Cord(ToAbsl(reason)));
  return status;
}

absl::Status WithField(absl::Status status, std::string_view field) {
  status.SetPayload(ToAbsl(kFieldPayload), absl::Cord(ToAbsl(field)));
  return status;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail;
  detail.set_reason(Payload(status, kReasonPayload));
  detail.set_field(Payload(status, kFieldPayload));
  if (detail.reason().empty()) detail.set_reason(absl::StatusCodeToString(status.code()));
  // Both enumerations are the canonical codes.
  return {static_cast<grpc::StatusCode>(status.code()), Sentence(status), detail.SerializeAsString()};
}

}  // namespace tp::api
