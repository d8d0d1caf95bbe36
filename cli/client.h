// A connection to tpd: blocking stubs, the caller's token on every call, and patience with a server
// that restarts. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/discovery.h"
#include "tp/v1/log.grpc.pb.h"
#include "tp/v1/node.grpc.pb.h"
#include "tp/v1/quota.grpc.pb.h"
#include "tp/v1/registry.grpc.pb.h"
#include "tp/v1/run.grpc.pb.h"
#include "tp/v1/snapshot.grpc.pb.h"
#include "tp/v1/system.grpc.pb.h"
#include "tp/v1/usage.grpc.pb.h"
#include "tp/v1/window.grpc.pb.h"

namespace tp::cli {

inline constexpr absl::Duration kConnectPatience = absl::Seconds(5);

// 128 random bits in hex. A mutating call carries one, the same in every try of it.
std::string NewRequestId();

class Client {
 public:
  // UNAVAILABLE with a sentence when nothing answers within `patience`.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const Endpoint& endpoint, absl::Duration patience);

  // A unary call, e.g. Call(&v1::RunService::Stub::GetRun, request).
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    Response response;
    absl::Status status = CallWithRetries(kCallTimeout, [&](grpc::ClientContext& context) {
      return (stub<Stub>().*method)(&context, request, &response);
    });
    if (!status.ok()) return status;
    return response;
  }

  // Calls `attempt` again while it says UNAVAILABLE, five times within about 9 s. What it does must be
  // safe to repeat: a read, or a change that carries a request id.
  absl::Status CallWithRetries(absl::Duration timeout,
                               const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

  // For streams: what CallWithRetries does to each context.
  void Authorize(grpc::ClientContext& context) const;

  // The sentence a user can act on, in place of the transport's.
  absl::Status Explain(const grpc::Status& status);

  template <typename Stub>
  Stub& stub() {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }

  const std::string& target() const { return target_; }

 private:
  static constexpr absl::Duration kCallTimeout = absl::Seconds(30);

  Client(std::string target, std::string token, const std::shared_ptr<grpc::Channel>& channel);

  absl::Status ExplainUnknownCall();

  std::string target_;
  std::string token_;
  std::tuple<std::unique_ptr<v1::RunService::Stub>, std::unique_ptr<v1::LogService::Stub>,
             std::unique_ptr<v1::SnapshotService::Stub>, std::unique_ptr<v1::RegistryService::Stub>,
             std::unique_ptr<v1::UsageService::Stub>, std::unique_ptr<v1::QuotaService::Stub>,
             std::unique_ptr<v1::WindowService::Stub>, std::unique_ptr<v1::NodeService::Stub>,
             std::unique_ptr<v1::SystemService::Stub>>
      stubs_;
};

}  // namespace tp::cli
