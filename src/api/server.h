// The gRPC server: all services, health, reflection, limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/configuration_port.h"
#include "api/context.h"
#include "api/loop_port.h"
#include "core/reconcile.h"
#include "core/registry.h"
#include "loop/commands.h"
#include "notify/status.h"
#include "store/store.h"

namespace tp::snapshot {
class Store;
}

namespace tp::api {

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any
  std::string page_token_key;
  int64_t revision = 0;  // the newest committed one
  ServerFacts facts;
  int call_threads = 4;
  int file_threads = 4;
  WorkerPool::OnFault on_fault = nullptr;  // what a call threw: it fails alone
};

// All of it outlives the server.
struct ServerParts {
  LoopPort& loop;
  store::Reader& reader;
  snapshot::Store& snapshots;
  ConfigurationPort& configuration;
  std::function<std::shared_ptr<const core::Registry>()> registry;  // thread-safe
  std::function<absl::Time()> now;                                  // thread-safe
  // Thread-safe, may block: what all engines hold of this deployment, of all epochs.
  std::function<absl::StatusOr<std::vector<core::SeenObject>>()> inventory = [] {
    return std::vector<core::SeenObject>();
  };
  // Thread-safe. RESOURCE_EXHAUSTED with the reason while submissions and uploads are refused.
  std::function<absl::Status()> may_take_work = [] { return absl::OkStatus(); };
  // Thread-safe.
  std::function<absl::StatusOr<std::vector<notify::ReceiverStatus>>()> receivers = [] {
    return std::vector<notify::ReceiverStatus>();
  };
  // Thread-safe.
  std::function<std::vector<NodeSight>()> node_sights = [] { return std::vector<NodeSight>(); };
};

class Server {
 public:
  // Listens and answers, health NOT_SERVING. UNAVAILABLE: the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, ServerParts parts);

  // Stops first.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Ends all calls, those still open after two seconds by cancelling them. The loop must still answer.
  // OnCommit may be called until the server is destroyed. Idempotent.
  void Stop();

  // `127.0.0.1:41234`
  const std::string& address() const;

  // Thread-safe. Health says SERVING only while the loop runs.
  void SetServing(bool serving);

  // To be called after each commit; thread-safe, does not block.
  void OnCommit(const loop::CommitNotice& notice);

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tp::api
