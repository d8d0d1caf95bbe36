#include "api/server.h"

#include <chrono>
#include <utility>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include "api/log_service.h"
#include "api/node_service.h"
#include "api/quota_service.h"
#include "api/registry_service.h"
#include "api/run_service.h"
#include "api/snapshot_service.h"
#include "api/system_service.h"
#include "api/usage_service.h"
#include "api/window_service.h"
#include "base/status.h"

namespace tp::api {
namespace {

constexpr int kMaxRequestBytes = 4 << 20;
constexpr int kMaxStreamsPerConnection = 512;
constexpr size_t kMaxNetworkBytes = size_t{512} << 20;
constexpr std::chrono::seconds kShutdownGrace{2};

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder->SetResourceQuota(grpc::ResourceQuota("tpd").Resize(kMaxNetworkBytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second tpd on the port is an error
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 20'000);
}

}  // namespace

struct Server::State {
  State(ServerOptions options, ServerParts parts)
      : context{.loop = parts.loop,
                .reader = parts.reader,
                .snapshots = parts.snapshots,
                .configuration = parts.configuration,
                .registry = std::move(parts.registry),
                .now = parts.now,
                .inventory = std::move(parts.inventory),
                .may_take_work = std::move(parts.may_take_work),
                .receivers = std::move(parts.receivers),
                .node_sights = std::move(parts.node_sights),
                .facts = std::move(options.facts),
                .page_tokens = PageTokens(std::move(options.page_token_key)),
                .authenticator = auth::Authenticator(parts.reader, parts.now),
                .hub = WatchHub(options.revision),
                .calls = WorkerPool(options.call_threads, options.on_fault),
                .files = WorkerPool(options.file_threads, options.on_fault)},
        runs(context),
        logs(context),
        snapshots(context),
        registry(context),
        usage(context),
        quotas(context),
        windows(context),
        nodes(context),
        system(context) {}

  absl::Status Listen(const std::string& host, int port) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    SetLimits(&builder);
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{&runs, &logs, &snapshots, &registry, &usage,
                                                                        &quotas, &windows, &nodes, &system}) {
      builder.RegisterService(service);
    }
    int chosen = 0;
    const std::string wanted = fmt::format("{}:{}", host, port);
    builder.AddListeningPort(wanted, grpc::InsecureServerCredentials(), &chosen);
    server = builder.BuildAndStart();
    if (!server || chosen == 0) {
      return Unavailable("cannot listen on {}: another process has the port, or the address is not of this machine",
                         wanted);
    }
    server->GetHealthCheckService()->SetServingStatus(false);
    address = fmt::format("{}:{}", host, chosen);
    return absl::OkStatus();
  }

  Context context;
  RunService runs;
  LogService logs;
  SnapshotService snapshots;
  RegistryService registry;
  UsageService usage;
  QuotaService quotas;
  WindowService windows;
  NodeService nodes;
  SystemService system;
  std::unique_ptr<grpc::Server> server;
  std::string address;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, ServerParts parts) {
  const std::string host = options.address;
  const int port = options.port;
  auto state = std::make_unique<State>(std::move(options), std::move(parts));
  TP_RETURN_IF_ERROR(state->Listen(host, port));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { Stop(); }

void Server::Stop() {
  SetServing(false);
  state_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  state_->server->Wait();
  state_->context.forecasts.Stop();
}

const std::string& Server::address() const { return state_->address; }

void Server::SetServing(bool serving) { state_->server->GetHealthCheckService()->SetServingStatus(serving); }

void Server::OnCommit(const loop::CommitNotice& notice) {
  state_->context.hub.OnCommit(notice);
  state_->context.forecasts.OnCommit(state_->context, notice);
}

}  // namespace tp::api
