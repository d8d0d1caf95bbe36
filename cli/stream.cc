#include "cli/stream.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/time/clock.h"

namespace tp::cli {
namespace {

constexpr absl::Duration kAwayAtMost = absl::Minutes(1);
constexpr absl::Duration kFirstDelay = absl::Milliseconds(100);
constexpr absl::Duration kLongestDelay = absl::Seconds(2);

}  // namespace

void StreamGuard::Begin(grpc::ClientContext& context) {
  client_.Authorize(context);
  if (options_.deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(options_.deadline));
  if (options_.interrupt != nullptr) options_.interrupt->Watch(&context);
}

void StreamGuard::Alive() {
  away_since_ = absl::InfiniteFuture();
  delay_ = absl::ZeroDuration();
}

absl::StatusOr<std::optional<StreamEnd>> StreamGuard::End(const grpc::Status& status) {
  if (options_.interrupt != nullptr) {
    options_.interrupt->Forget();
    if (options_.interrupt->interrupted()) return StreamEnd::kInterrupted;
  }
  if (status.ok()) return StreamEnd::kComplete;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return AwaitServer(status);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (absl::Now() >= options_.deadline) return StreamEnd::kDeadline;
      return client_.Explain(status);
    default:  // an open enum
      return client_.Explain(status);
  }
}

absl::StatusOr<std::optional<StreamEnd>> StreamGuard::AwaitServer(const grpc::Status& status) {
  const absl::Time now = absl::Now();
  if (away_since_ == absl::InfiniteFuture()) {
    away_since_ = now;
    options_.on_away();
  }
  if (now - away_since_ > kAwayAtMost) return client_.Explain(status);
  delay_ = std::clamp(2 * delay_, kFirstDelay, kLongestDelay);
  if (options_.interrupt == nullptr) {
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(delay_));
  } else if (!options_.interrupt->Sleep(delay_)) {
    return StreamEnd::kInterrupted;
  }
  return std::optional<StreamEnd>();
}

}  // namespace tp::cli
