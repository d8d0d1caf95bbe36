// One wait at the hub at a time, for a stream; taken back with the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "api/watch_hub.h"

namespace tp::api {

class HubWait {
 public:
  explicit HubWait(WatchHub& hub) : hub_(hub) {}
  ~HubWait() { hub_.Cancel(id_); }
  HubWait(const HubWait&) = delete;
  HubWait& operator=(const HubWait&) = delete;

  void Arm(int64_t run, int64_t after, std::function<void()> wake) {
    hub_.Cancel(id_);
    id_ = hub_.Wait(run, after, std::move(wake));
  }

 private:
  WatchHub& hub_;
  WatchHub::WaitId id_ = 0;
};

}  // namespace tp::api
