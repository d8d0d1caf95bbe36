// A stream of messages from a client, read one at a time and handled on a worker thread; gRPC's flow control
// holds the client back meanwhile.
#pragma once

#include <optional>
#include <string_view>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "api/call.h"

namespace tp::api {

// Deletes itself. The caller is authenticated before the first message is handled, and at the end of a stream
// without any.
template <typename Request>
class ClientStream : public grpc::ServerReadReactor<Request> {
 public:
  ClientStream(Context& context, grpc::CallbackServerContext* server_context, std::string_view method)
      : context_(context), server_context_(server_context), method_(method) {}

  // Reads on from here; the constructors are done.
  ClientStream* Start() {
    this->StartRead(&message_);
    return this;
  }

 protected:
  // Anything but OK ends the call with it.
  virtual absl::Status OnMessage(Request& message) = 0;
  // Nothing more comes. Has to lead to one Answer.
  virtual void OnEnd() = 0;
  // The call ends with an error: what may block is given up here, not in the destructor.
  virtual void OnBroken() {}

  void Answer(const absl::Status& status) { this->Finish(ToGrpc(status)); }

  Context& context() { return context_; }
  const Call& call() const { return *call_; }

 private:
  void OnReadDone(bool ok) final {
    context_.files.Post([this, ok] { Handle(ok); });
  }
  void OnDone() final { delete this; }

  void Handle(bool ok) {
    absl::Status status = Admit();
    if (status.ok() && !ok && server_context_->IsCancelled()) status = absl::CancelledError("the call was broken off");
    if (status.ok() && ok) status = OnMessage(message_);
    if (!status.ok()) {
      OnBroken();
      return Answer(status);
    }
    if (!ok) return OnEnd();
    this->StartRead(&message_);
  }

  absl::Status Admit() {
    if (call_) return absl::OkStatus();
    TP_ASSIGN_OR_RETURN(call_, Authenticate(context_, *server_context_, method_));
    return absl::OkStatus();
  }

  Context& context_;
  grpc::CallbackServerContext* const server_context_;
  const std::string_view method_;
  Request message_;
  std::optional<Call> call_;
};

}  // namespace tp::api
