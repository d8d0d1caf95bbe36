// Server streams that outlive a restart of the server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <grpcpp/support/sync_stream.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client.h"
#include "cli/interrupt.h"

namespace tp::cli {

enum class StreamEnd : uint8_t {
  kComplete,     // the server said so
  kEnough,       // the consumer said so
  kInterrupted,  // Ctrl-C
  kDeadline,
};

struct StreamOptions {
  absl::Time deadline = absl::InfiniteFuture();
  Interrupt* interrupt = nullptr;         // optional
  std::function<void()> on_away = [] {};  // each time the server goes away
};

// Decides what the end of a stream means. One object a followed stream.
class StreamGuard {
 public:
  StreamGuard(Client& client, const StreamOptions& options) : client_(client), options_(options) {}

  // Before a stream is opened with this context.
  void Begin(grpc::ClientContext& context);
  // After each message: the server is there.
  void Alive();
  // After the stream's end. Nothing: it is worth another try, and its time has come.
  absl::StatusOr<std::optional<StreamEnd>> End(const grpc::Status& status);

 private:
  absl::StatusOr<std::optional<StreamEnd>> AwaitServer(const grpc::Status& status);

  Client& client_;
  const StreamOptions& options_;
  absl::Time away_since_ = absl::InfiniteFuture();
  absl::Duration delay_ = absl::ZeroDuration();
};

// Opens the stream by `open` and hands each message to `consume`, which says whether it wants more.
// When the server goes away, up to a minute, it opens again: `open` asks from where `consume` is.
template <typename Response>
absl::StatusOr<StreamEnd> ReadStream(
    Client& client, const StreamOptions& options,
    const std::function<std::unique_ptr<grpc::ClientReader<Response>>(grpc::ClientContext*)>& open,
    const std::function<bool(const Response&)>& consume) {
  StreamGuard guard(client, options);
  while (true) {
    grpc::ClientContext context;
    guard.Begin(context);
    const std::unique_ptr<grpc::ClientReader<Response>> reader = open(&context);
    Response response;
    bool enough = false;
    while (!enough && reader->Read(&response)) {
      guard.Alive();
      enough = !consume(response);
    }
    if (enough) context.TryCancel();
    const grpc::Status status = reader->Finish();
    const absl::StatusOr<std::optional<StreamEnd>> end = guard.End(status);
    if (enough) return StreamEnd::kEnough;
    if (!end.ok()) return end.status();
    if (end->has_value()) return **end;
  }
}

}  // namespace tp::cli
