// The one owner of live state (DESIGN 12). Single-threaded and without I/O, clock or randomness of its
// own: the simulator and LoopThread drive it. One turn: messages -> core -> one Txn; effects, replies
// and notices leave when that Txn is durable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/apply.h"
#include "core/gates.h"
#include "core/launch_plan.h"
#include "core/placement.h"
#include "core/registry.h"
#include "core/run.h"
#include "loop/commands.h"
#include "loop/effects.h"
#include "store/rows.h"

namespace tp::loop {

struct Settings {
  core::Deployment deployment;
  core::Policy policy;
  core::LaunchLayout layout;
  absl::TimeZone accounting_zone = absl::UTCTimeZone();
  const core::Table* table = &core::ProductTable();  // another one only in tests of the tests
  int max_messages_per_turn = 256;
};

// An answer to an outbox row, or what was seen of a tracked attempt.
struct EffectAnswered {
  int64_t outbox_id = 0;
  EffectResult result;
};
struct AttemptObserved {
  std::string key;
  Observation observation;
};

class Loop {
 public:
  // `nonce` makes 128 random bits as hex; `sink` outlives the loop.
  Loop(Settings settings, store::Loaded loaded, std::shared_ptr<const core::Registry> registry, EffectSink& sink,
       std::function<std::string()> nonce);

  // Messages wait for the next turn, in order.
  void Post(Command command, Reply reply);
  void Post(Query query, QueryReply reply);
  void Post(EffectAnswered answered);
  void Post(AttemptObserved observed);
  void Post(std::shared_ptr<const core::Registry> registry);
  void SetListener(CommitListener listener);

  // Takes waiting messages and due timers and plans launches. Returns the transaction to commit, or
  // nothing where nothing changed. Call again only after Committed, except that a turn which returned
  // nothing may be followed by another.
  std::optional<store::Txn> Turn(absl::Time now);

  // The transaction of the last turn is durable: its effects, replies and notice leave.
  void Committed();

  // The transaction could not be written because the disk is full: it is given up whole, the state it
  // came from is in force again, and its requests are answered RESOURCE_EXHAUSTED.
  bool has_messages() const;
  std::optional<absl::Time> NextTimer() const;
};

}  // namespace tp::loop
