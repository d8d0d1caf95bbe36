// The adapter between gRPC's callbacks and handlers: a handler runs on a worker thread, knows who calls
// and answers through Done, once, from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/context.h"
#include "api/errors.h"
#include "api/grpc_status.h"
#include "auth/roles.h"
#include "loop/commands.h"

namespace tp::api {

// An authenticated call. `method` as gRPC writes it.
struct Call {
  auth::Identity caller;
  std::string method;

  loop::Principal principal() const { return {.user = caller.user, .role = caller.role}; }
};

using Done = std::function<void(absl::Status)>;

// Who calls, and whether this method is theirs to call. May read the store.
absl::StatusOr<Call> Authenticate(Context& context, const grpc::CallbackServerContext& server_context,
                                  std::string_view method);

// RESOURCE_EXHAUSTED when so many calls wait that another one would only wait with them.
absl::Status CheckBacklog(const WorkerPool& pool);

// Finishes a call once: with what it is given, or, where its work ended in an exception, by saying so.
class Finisher {
 public:
  explicit Finisher(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  Finisher(const Finisher&) = delete;
  Finisher& operator=(const Finisher&) = delete;
  ~Finisher();

  void Finish(const absl::Status& status);

 private:
  grpc::ServerUnaryReactor* const reactor_;
  std::atomic<bool> finished_ = false;
};

// Runs `handler(call, done)` on `pool` and finishes the call with what `done` is given.
template <typename Handler>
grpc::ServerUnaryReactor* RunUnary(Context& context, WorkerPool& pool, grpc::CallbackServerContext* server_context,
                                   std::string_view method, Handler handler) {
  grpc::ServerUnaryReactor* reactor = server_context->DefaultReactor();
  if (absl::Status status = CheckBacklog(pool); !status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  pool.Post([&context, server_context, method, reactor, handler = std::move(handler)] {
    const auto call = Authenticate(context, *server_context, method);
    if (!call.ok()) {
      reactor->Finish(ToGrpc(call.status()));
      return;
    }
    const auto finisher = std::make_shared<Finisher>(reactor);
    handler(*call, [finisher](const absl::Status& status) { finisher->Finish(status); });
  });
  return reactor;
}

// The same for a handler that returns its status.
template <typename Handler>
grpc::ServerUnaryReactor* RunUnarySync(Context& context, WorkerPool& pool, grpc::CallbackServerContext* server_context,
                                       std::string_view method, Handler handler) {
  return RunUnary(context, pool, server_context, method,
                  [handler = std::move(handler)](const Call& call, const Done& done) { done(handler(call)); });
}

}  // namespace tp::api
