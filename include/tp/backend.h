// The one interface to an engine (DESIGN 10). Implementations live in src/backends/<name>.
//
// Threads: every call may block and is made from threads that belong to this backend alone; calls for
// different attempts may run at the same time, calls for one attempt never do. Nothing here is called
// from the loop. Deadlines: a call returns by `deadline`, with Unknown, Indeterminate or
// DEADLINE_EXCEEDED where the engine did not answer.
// Errors: an engine that does not answer is never an end of anything. Sentences name what failed,
// where, and what to do.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tp/launch.h"
#include "tp/observation.h"

namespace tp {

struct Capabilities {
  bool several_pools = false;
  int max_nodes = 0;            // of one pool; 0: no limit of the backend's own
  bool unique_names = false;    // the engine refuses a second object of the same key
  bool allocates_cards = false;  // the engine chooses nodes and cards; otherwise tpd does
};

// Which attempt a call is about. `nonce` is the launch call that tpd believes in.
struct AttemptTarget {
  std::string key;
  std::string nonce;
  std::string attempt_dir;  // as tpd sees it
  std::vector<int> ranks_per_pool;
  bool operator==(const AttemptTarget&) const = default;
};

struct LaunchAccepted {};
struct LaunchRejected {  // for good: the same request will never be accepted
  enum class Kind { kEngine, kImage, kStorage } kind = Kind::kEngine;
  std::string reason;
};
struct LaunchRefused {  // for now
  std::string reason;
};
struct LaunchIndeterminate {  // the answer was lost: look up by key before anything else
  std::string reason;
};
using LaunchResult = std::variant<LaunchAccepted, LaunchRejected, LaunchRefused, LaunchIndeterminate>;

// DESIGN 5.4. kWon: nothing of the attempt can start any more. kLost: a launch call owns it.
struct FenceWon {};
struct FenceLost {
  std::string owner_nonce;
};
struct FenceFailed {
  std::string reason;
};
using FenceResult = std::variant<FenceWon, FenceLost, FenceFailed>;

enum class StopLevel {
  kWarn,  // the announced warning and the pause file; ends nothing by itself
  kTerm,
  kKill,  // closes the fence first, then ends every tree
};

struct InventoryItem {
  std::string key;
  bool holds_cards = false;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Capabilities capabilities() const = 0;

  // Whether the spec can ever be launched here. INVALID_ARGUMENT names the field.
  virtual absl::Status Validate(const LaunchSpec& spec) const = 0;

  // What Launch would send, for `--dry-run` and golden tests. No I/O.
  virtual std::string Render(const LaunchSpec& spec) const = 0;

  // Prepares the attempt directory and hands the attempt over. At most one call per (key, nonce).
  virtual LaunchResult Launch(const LaunchSpec& spec, absl::Time deadline) = 0;

  // One observation per target, in order.
  virtual std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets,
                                           absl::Time deadline) = 0;

  virtual FenceResult Fence(const AttemptTarget& target, absl::Time deadline) = 0;

  // Idempotent; an attempt that is already gone is OK.
  virtual absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) = 0;

  // Takes the engine's object away, never its records. Gone already is OK.
  virtual absl::Status Remove(const AttemptTarget& target, absl::Time deadline) = 0;

  // All objects of this deployment, of all epochs.
  virtual absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) = 0;

  // `wake` may be called from any thread whenever something may have changed at the attempt with that
  // key; it is a hint only. Called once, before anything else.
  virtual void SetWake(std::function<void(const std::string& key)> wake) = 0;
};

}  // namespace tp
