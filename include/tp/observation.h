// What a backend saw of one attempt (DESIGN 5.2). There is no way to build an ended attempt out of
// not having seen it: Unknown carries nothing but its reason. Plain values.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tp/records.h"

namespace tp {

// Who holds attempt.claim, as read from the attempt's storage.
enum class Claim {
  kNone,         // no claim file
  kThisLaunch,   // the nonce of the launch call asked about
  kOtherLaunch,  // another launch call of the same attempt
  kFenced,       // tpd fenced it: nothing of this attempt may start any more
};

// What is known of a rank's process tree, verified on its host where the engine allows.
enum class Tree {
  kUnknown,  // not started yet, or its host does not answer
  kAlive,
  kGone,  // verified: no process of the tree is left and none can start; any end record was read after that
};

struct RankObservation {
  int pool = 0;
  int rank = 0;
  Tree tree = Tree::kUnknown;
  std::optional<StartRecord> started;
  std::optional<EndRecord> ended;
  std::optional<Heartbeat> heartbeat;
  bool operator==(const RankObservation&) const = default;
};

// What the engine itself says about the end of an object; the records come first.
enum class EngineEnd {
  kNone,        // not ended, or the engine has nothing to say
  kExitedZero,  // exit 0, no outage, drain, limit or stop around it
  kFailed,
  kOutOfMemory,
  kEvicted,
  kPreempted,
  kNodeLost,
  kTimeLimit,
  kImage,
};

enum class EnginePhase {
  kWaiting,  // the engine has it, cards not yet occupied
  kActive,   // at least one rank may hold its cards
  kEnded,    // no rank can run any more
};

struct Present {
  EnginePhase phase = EnginePhase::kWaiting;
  Claim claim = Claim::kNone;
  std::vector<RankObservation> ranks;  // every rank of every pool, in (pool, rank) order
  bool cards_granted = false;          // the engine gave the cards; from here start_timeout runs
  bool freed = false;                  // DESIGN 5.6: the object holds no card and every tree is verified gone
  EngineEnd engine_end = EngineEnd::kNone;
  std::string reason;  // the engine's own words, shown to the user
  bool operator==(const Present&) const = default;
};

// An authoritative answer of a healthy engine that it has no such object. The storage was read after
// that answer and after the visibility delay.
struct Absent {
  Claim claim = Claim::kNone;
  std::vector<RankObservation> ranks;
  bool operator==(const Absent&) const = default;
};

struct Unknown {
  std::string why;
  bool operator==(const Unknown&) const = default;
};

using Observation = std::variant<Present, Absent, Unknown>;

}  // namespace tp
