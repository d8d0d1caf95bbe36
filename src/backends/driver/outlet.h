// The way back to the loop: one callback at a time, none once it is closed. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "backends/driver/driver.h"

namespace tp::driver {

class Outlet {
 public:
  explicit Outlet(DriverCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void Answer(int64_t outbox_id, loop::EffectResult result) {
    const std::lock_guard lock(mutex_);
    if (!closed_) callbacks_.effect_answered(outbox_id, std::move(result));
  }

  void Observed(const std::string& key, Observation observation) {
    const std::lock_guard lock(mutex_);
    if (!closed_) callbacks_.attempt_observed(key, std::move(observation));
  }

  void LookWanted() {
    const std::lock_guard lock(mutex_);
    if (!closed_ && callbacks_.look_wanted) callbacks_.look_wanted();
  }

  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

 private:
  std::mutex mutex_;
  const DriverCallbacks callbacks_;
  bool closed_ = false;
};

}  // namespace tp::driver
