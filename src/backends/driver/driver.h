// Carries the loop's effects to the backends and what is seen of attempts back to the loop.
//
// Each backend has a lane: threads of its own, so that a backend that hangs holds up nobody else's
// jobs; a call that overruns its deadline is given up, answered for, and its thread replaced. Within a
// lane the calls for one key run one at a time and in order. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "backends/driver/guarded_calls.h"
#include "loop/effects.h"
#include "tp/backend.h"

namespace tp::driver {

class Lane;
class Outlet;

struct DriverOptions {
  int effect_threads = 4;     // of each backend
  int observe_threads = 2;    // of each backend
  int max_given_up = 16;      // hung calls whose threads are replaced; beyond, the lane has fewer
  size_t observe_batch = 64;  // targets of one Observe call

  absl::Duration launch_limit = absl::Minutes(2);
  absl::Duration order_limit = absl::Seconds(30);  // fence, stop, remove
  absl::Duration observe_limit = absl::Seconds(10);
  absl::Duration overrun = absl::Seconds(2);  // beyond its limit a call is given up

  absl::Duration young_for = absl::Seconds(10);
  absl::Duration eager_interval = absl::Milliseconds(200);  // of attempts that are young or ending
  absl::Duration interval = absl::Milliseconds(1500);       // of others, +- a third
  absl::Duration unknown_interval_max = absl::Seconds(15);  // the interval doubles while all is Unknown
  absl::Duration repeat_equal_after = absl::Seconds(1);     // an unchanged observation is posted again
};

// Called from any thread of the driver, never two at a time, and not after Shutdown.
struct DriverCallbacks {
  std::function<void(int64_t outbox_id, loop::EffectResult result)> effect_answered;
  std::function<void(const std::string& key, Observation observation)> attempt_observed;
  std::function<void()> look_wanted = {};  // at cards, soon; empty: nobody looks
};

class Driver final : public loop::EffectSink {
 public:
  Driver(const std::map<std::string, std::shared_ptr<Backend>>& backends, DriverCallbacks callbacks,
         const DriverOptions& options);
  ~Driver() override;  // shuts down and waits for `overrun` at most

  void Launch(int64_t outbox_id, const std::string& backend, const LaunchSpec& spec,
              const AttemptTarget& target) override;
  void Fence(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) override;
  void Signal(int64_t outbox_id, const std::string& backend, const AttemptTarget& target, StopLevel level) override;
  void Remove(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) override;
  void Track(const std::string& backend, const AttemptTarget& target) override;
  void Untrack(const std::string& key) override;
  void Look(const std::string& backend, const AttemptTarget& target) override;
  void LookAtCards(const std::string& backend) override;

  // Begins nothing more and waits for the calls under way until `deadline`; what has not returned by
  // then is left to itself. Effects without an answer stay in the outbox. A second call does nothing.
  void Shutdown(absl::Time deadline);

 private:
  std::shared_ptr<Lane> LaneOf(const std::string& backend);  // nothing once it is shut down
  void Push(int64_t outbox_id, const std::string& backend, Call call, const AttemptTarget& target);

  const DriverOptions options_;
  const std::shared_ptr<Outlet> outlet_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Lane>> lanes_;
  std::map<std::string, std::string> backend_of_key_;  // of tracked attempts
  bool shut_down_ = false;
};

}  // namespace tp::driver
