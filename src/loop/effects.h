// The loop's only way out to the engines. Every call returns at once; what comes of it arrives later
// as a message to the loop. Implemented by backends/driver (threads over tp::Backend) and by the
// simulator (virtual time).
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "tp/backend.h"

namespace tp::loop {

class EffectSink {
 public:
  virtual ~EffectSink() = default;

  // `outbox_id` comes back in the answer. Calls for one key are carried out in the order given, one at
  // a time; calls for different keys do not wait for each other. A repeated id is carried out again.
  virtual void Launch(int64_t outbox_id, const std::string& backend, const LaunchSpec& spec,
                      const AttemptTarget& target) = 0;
  virtual void Fence(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) = 0;
  virtual void Signal(int64_t outbox_id, const std::string& backend, const AttemptTarget& target, StopLevel level) = 0;
  virtual void Remove(int64_t outbox_id, const std::string& backend, const AttemptTarget& target) = 0;

  // From now on the attempt is observed, on a wake of its engine and at an interval, each observation
  // posted to the loop; until Untrack.
  virtual void Track(const std::string& backend, const AttemptTarget& target) = 0;
  virtual void Untrack(const std::string& key) = 0;

  // One observation of an attempt that has been left and is not tracked, posted to the loop like any other. It may
  // never come: whoever still wants to know asks again.
  virtual void Look(const std::string& backend, const AttemptTarget& target) = 0;

  // One look at the backend's cards, soon; what it sees is posted to the loop. It may never come.
  virtual void LookAtCards(const std::string& /*backend*/) {}
};

// The backend that removes run directories: its targets' attempt_dir is a whole run's.
inline constexpr char kStorageBackend[] = "@storage";

// What an outbox row came to. Signal and Remove answer with a status; not OK: tried again.
using EffectResult = std::variant<LaunchResult, FenceResult, absl::Status>;

}  // namespace tp::loop
