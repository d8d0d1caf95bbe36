// The one interface to an engine (DESIGN 10). Implementations live in src/backends/<name>.
//
// Threads: every call may block and is made from threads that belong to this backend alone; calls for
// different attempts may run at the same time, calls for one attempt never do, but beside an Observe of
// several that is past its deadline. Nothing here is called from the loop. Deadlines: a call returns by
// `deadline`, with Unknown, Indeterminate or DEADLINE_EXCEEDED where the engine did not answer; one that the
// kernel holds up, as on storage that hangs, is left to itself, and must hold up no call for another attempt.
// Errors: an engine that does not answer is never an end of anything. Sentences name what failed,
// where, and what to do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tp/attempt.h"
#include "tp/launch.h"
#include "tp/nodes.h"
#include "tp/observation.h"

namespace tp {

struct Capabilities {
  bool several_pools = false;
  int max_nodes = 0;             // of one pool; 0: no limit of the backend's own
  bool unique_names = false;     // the engine refuses a second object of the same key
  bool allocates_cards = false;  // the engine chooses nodes and cards; otherwise tpd does
};

struct InventoryItem {
  std::string key;
  bool holds_cards = false;
  // What orders to it need; nothing: not known, as of a launch that nobody has claimed yet.
  std::optional<AttemptTarget> target = std::nullopt;
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

  // One observation per target, in order. Past the deadline no further one is begun with.
  virtual std::vector<Observation> Observe(const std::vector<AttemptTarget>& targets, absl::Time deadline) = 0;

  virtual FenceResult Fence(const AttemptTarget& target, absl::Time deadline) = 0;

  // Idempotent; an attempt that is already gone is OK.
  virtual absl::Status Stop(const AttemptTarget& target, StopLevel level, absl::Time deadline) = 0;

  // Takes the engine's object away, never its records. Gone already is OK.
  virtual absl::Status Remove(const AttemptTarget& target, absl::Time deadline) = 0;

  // All objects of this deployment, of all epochs. For a start and for an admin who asks: also from their threads.
  virtual absl::StatusOr<std::vector<InventoryItem>> Inventory(absl::Time deadline) = 0;

  // The registry's machines on which it launches; at the start and whenever they may have changed. From any thread.
  virtual void SetNodes(const std::vector<RankHost>& /*nodes*/) {}

  // Asks each of them how it is, where the backend reaches machines by itself. From the same thread as ForeignCards.
  virtual void ProbeNodes(absl::Time /*deadline*/) {}

  // As last seen; no I/O. From any thread.
  virtual std::vector<NodeSight> Nodes() const { return {}; }

  // Cards of its engine that others hold. For a look every so often, from a thread of its own.
  virtual absl::StatusOr<std::vector<ForeignCard>> ForeignCards(absl::Time /*deadline*/) {
    return std::vector<ForeignCard>();
  }

  // All cards of these nodes, but of those of which nothing can be said: they have no tool to look with, or do not
  // answer. Broken are cards that are missing, have memory errors or a driver error that needs service. From the same
  // thread as ForeignCards.
  virtual absl::StatusOr<std::vector<CardSight>> LookAtCards(const std::vector<NodeCards>& /*nodes*/,
                                                             absl::Time /*deadline*/) {
    return std::vector<CardSight>();
  }

  // `wake` may be called from any thread whenever something may have changed at the attempt with that
  // key; it is a hint only. Called once, before anything else.
  virtual void SetWake(std::function<void(const std::string& key)> wake) = 0;
};

}  // namespace tp
