#include "cli/rpc_status.h"

#include <string>

#include "absl/strings/cord.h"

namespace tp::cli {
namespace {

constexpr const char* kDetailUrl = "tp.v1.ErrorDetail";

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string sentence = status.error_message();
  if (sentence.empty()) sentence = "the server gave no reason";
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()), sentence);
  if (!status.error_details().empty()) converted.SetPayload(kDetailUrl, absl::Cord(status.error_details()));
  return converted;
}

v1::ErrorDetail DetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  const auto payload = status.GetPayload(kDetailUrl);
  if (payload && !detail.ParseFromString(std::string(*payload))) detail.Clear();
  return detail;
}

}  // namespace tp::cli
