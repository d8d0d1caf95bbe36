// The adapter for answers that are streams. A stream is asked for its next message on a worker thread,
// never by two at a time; one write is in flight; a stream that waits holds no thread.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "api/call.h"
#include "base/status.h"

namespace tp::api {

// Made by Start, lives until gRPC is done with it and no task or wake refers to it.
template <typename Response>
class ServerStream : public grpc::ServerWriteReactor<Response>,
                     public std::enable_shared_from_this<ServerStream<Response>> {
 public:
  // Takes `stream` into its own keeping. The result is for gRPC.
  static grpc::ServerWriteReactor<Response>* Start(std::shared_ptr<ServerStream> stream) {
    ServerStream* reactor = stream.get();
    reactor->self_ = std::move(stream);
    reactor->Wake();
    return reactor;
  }

  // Thread-safe: there may be something to send.
  void Wake() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kIdle) {
      Schedule();
    } else if (state_ == State::kProducing) {
      woken_ = true;
    }
  }

 protected:
  ServerStream(Context& context, WorkerPool& pool, grpc::CallbackServerContext* server_context, std::string_view method)
      : context_(context), pool_(pool), server_context_(server_context), method_(method) {}

  struct Write {};  // `response` was filled
  struct Wait {     // until Wake, or this long
    absl::Duration at_most;
  };
  using Next = std::variant<Write, Wait, absl::Status>;  // a status ends the stream

  // Called once, first.
  virtual absl::Status Open(const Call& call) = 0;
  // `response` is empty.
  virtual Next Produce(Response* response) = 0;

  Context& context() { return context_; }

 private:
  enum class State { kIdle, kScheduled, kProducing, kWriting, kFinished };

  void OnWriteDone(bool ok) final {
    if (!ok) cancelled_ = true;
    const std::lock_guard lock(mutex_);
    Schedule();
  }

  void OnCancel() final {
    cancelled_ = true;
    Wake();
  }

  void OnDone() final { self_.reset(); }

  // mutex_ held
  void Schedule() {
    state_ = State::kScheduled;
    pool_.Post([self = this->shared_from_this()] { self->Turn(); });
  }

  void Turn() {
    {
      const std::lock_guard lock(mutex_);
      state_ = State::kProducing;
      woken_ = false;
    }
    response_.Clear();
    Next next = NextOrFault();
    if (std::holds_alternative<Write>(next)) {
      SetState(State::kWriting);
      this->StartWrite(&response_);
    } else if (const auto* wait = std::get_if<Wait>(&next)) {
      GoIdle(wait->at_most);
    } else {
      SetState(State::kFinished);
      this->Finish(ToGrpc(std::get<absl::Status>(next)));
    }
  }

  Next NextOrFault() {
    try {
      return NextOrCancelled();
    } catch (const std::exception& fault) {
      return Internal("a fault in tpd: {}; tell its admin", fault.what());
    }
  }

  Next NextOrCancelled() {
    if (cancelled_) return absl::CancelledError("the client went away");
    if (!opened_) {
      opened_ = true;
      const auto call = Authenticate(context_, *server_context_, method_);
      absl::Status status = call.ok() ? Open(*call) : call.status();
      if (!status.ok()) return status;
    }
    return Produce(&response_);
  }

  void SetState(State state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }

  void GoIdle(absl::Duration at_most) {
    const std::lock_guard lock(mutex_);
    if (woken_) {
      Schedule();
      return;
    }
    state_ = State::kIdle;
    const absl::Time due = absl::Now() + at_most;
    if (timer_due_ <= due) return;  // the timer that runs comes first, and will be followed by another
    timer_due_ = due;
    pool_.PostAfter(at_most, [weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) self->OnTimer();
    });
  }

  void OnTimer() {
    {
      const std::lock_guard lock(mutex_);
      timer_due_ = absl::InfiniteFuture();
    }
    Wake();
  }

  Context& context_;
  WorkerPool& pool_;
  grpc::CallbackServerContext* const server_context_;  // valid until OnDone
  const std::string method_;
  std::shared_ptr<ServerStream> self_;  // until OnDone
  std::atomic<bool> cancelled_ = false;
  bool opened_ = false;  // used by turns only
  Response response_;    // used by turns, or by gRPC while kWriting
  std::mutex mutex_;
  State state_ = State::kIdle;                     // guarded by mutex_
  bool woken_ = false;                             // guarded by mutex_
  absl::Time timer_due_ = absl::InfiniteFuture();  // guarded by mutex_
};

}  // namespace tp::api
