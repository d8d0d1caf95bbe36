// One way to a receiver. Used by one thread at a time; `Send` blocks, at most for the channel's own deadline.
#pragma once

#include "notify/notification.h"
#include "notify/retry.h"

namespace tp::notify {

class Channel {
 public:
  virtual ~Channel() = default;

  // Hands the message over once. Given up soon (kCancelled) when `stop_fd` becomes readable.
  virtual TryResult Send(const Notification& message, int stop_fd) = 0;
};

}  // namespace tp::notify
