#include "api/call.h"

#include "base/status.h"

namespace tp::api {
namespace {

constexpr size_t kMaxBacklog = 10'000;

}  // namespace

absl::StatusOr<Call> Authenticate(Context& context, const grpc::CallbackServerContext& server_context,
                                  std::string_view method) {
  const auto& metadata = server_context.client_metadata();
  const auto found = metadata.find("authorization");
  const std::string_view authorization =
      found == metadata.end() ? std::string_view() : std::string_view(found->second.data(), found->second.size());
  TP_ASSIGN_OR_RETURN(auth::Identity caller, context.authenticator.Authenticate(authorization));
  TP_RETURN_IF_ERROR(auth::CheckMayCall(caller, method));
  return Call{.caller = std::move(caller), .method = std::string(method)};
}

void Finisher::Finish(const absl::Status& status) {
  if (!finished_.exchange(true)) reactor_->Finish(ToGrpc(status));
}

Finisher::~Finisher() { Finish(Internal("a fault in tpd kept this call from its answer: tell its admin")); }

absl::Status CheckBacklog(const WorkerPool& pool) {
  if (pool.backlog() < kMaxBacklog) return absl::OkStatus();
  return Error(absl::StatusCode::kResourceExhausted, "{} calls wait already: try again in a moment", kMaxBacklog);
}

}  // namespace tp::api
