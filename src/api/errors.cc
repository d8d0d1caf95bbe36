#include "api/errors.h"

#include "absl/strings/cord.h"

namespace tp::api {
namespace {

constexpr std::string_view kReasonPayload = "tp.v1.ErrorDetail.reason";
constexpr std::string_view kFieldPayload = "tp.v1.ErrorDetail.field";

std::string Payload(const absl::Status& status, std::string_view name) {
  const auto payload = status.GetPayload(ToAbsl(name));
  return payload ? std::string(*payload) : std::string();
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

std::string ReasonOf(const absl::Status& status) { return Payload(status, kReasonPayload); }
std::string FieldOf(const absl::Status& status) { return Payload(status, kFieldPayload); }

}  // namespace tp::api
