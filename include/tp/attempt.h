// What calls about one attempt name, ask and answer. Values only, for the core as well as for backends.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace tp {

// The machine that a rank was placed on.
struct RankHost {
  std::string node;  // as in the registry
  std::string address;
  bool declared_dead = false;  // by an admin (DESIGN 5.11): it is not asked, and what ran there counts as gone
  bool operator==(const RankHost&) const = default;
};

// Which attempt a call is about. `nonce` is the launch call that tpd believes in.
struct AttemptTarget {
  std::string key;
  std::string nonce;
  std::string attempt_dir;  // as tpd sees it
  std::vector<int> ranks_per_pool;
  std::vector<RankHost> hosts = {};  // in (pool, rank) order; empty names where the engine chooses
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

}  // namespace tp
