// The queue, put in order once for all that ask between two commits, and renewed by what was committed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/queue.h"
#include "core/fair_share.h"
#include "core/registry.h"

namespace tp::api {

struct Context;

struct QueueInOrder {
  int64_t revision = 0;
  absl::Time at;
  absl::Time read_at;  // all of it
  std::shared_ptr<const core::Registry> registry;
  std::vector<WaitingStep> steps;
};

// Thread-safe.
class QueueCache {
 public:
  // Blocking. The order is that of some seconds ago where nothing was committed since: shares and
  // priorities move slowly.
  absl::StatusOr<std::shared_ptr<const QueueInOrder>> Read(Context& context, const core::Shares& shares);

 private:
  absl::Status Fill(Context& context, const core::Shares& shares, QueueInOrder& to) const;  // mutex_ held

  std::mutex mutex_;
  std::shared_ptr<const QueueInOrder> latest_;  // guarded by mutex_
};

// The shares of users are the loop's to know; `then` is called on a thread of context.calls, or at once where
// they do not count.
void WithShares(Context& context, std::function<void(const absl::Status&)> failed,
                std::function<void(const core::Shares&)> then);

}  // namespace tp::api
