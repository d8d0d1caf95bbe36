// Everything a backend needs to launch one attempt. Built by core::PlanLaunch from frozen values, so
// that the same attempt renders to the same bytes. Carries no secret values. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tp {

// One node's process tree in a pool.
struct RankPlacement {
  std::string node;        // as in the registry; empty where the engine chooses
  std::string address;     // how other ranks reach it
  std::vector<int> cards;  // indices on the node; empty where the engine chooses, and on cpu series
  bool operator==(const RankPlacement&) const = default;
};

// What a rank may use of its node. Absent: the engine's own default.
struct RankLimits {
  std::optional<int> cpus;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> shm_bytes;
  std::optional<int64_t> memlock_bytes;  // kUnlimited: no limit
  bool operator==(const RankLimits&) const = default;
};
inline constexpr int64_t kUnlimited = -1;

// What a pool asks of each node that it is placed on, from its series.
struct NodeDemand {
  RankLimits limits;                                 // of its one rank there
  bool virtual_cards = false;                        // declared, not looked for: no device is handed to the rank
  std::string constraint;                            // slurm
  std::map<std::string, std::string> node_selector;  // kubernetes, over the executor's
  bool operator==(const NodeDemand&) const = default;
};

struct PoolPlacement {
  std::string series;
  std::string profile;
  std::vector<std::string> roles;
  int gpus_per_node = 0;  // cards a rank uses (not the node's total); 0 on cpu series
  int master_port = 0;
  std::vector<RankPlacement> ranks;
  bool operator==(const PoolPlacement&) const = default;

  int64_t cards() const { return static_cast<int64_t>(gpus_per_node) * static_cast<int64_t>(ranks.size()); }
};

// The paths of an attempt, as its ranks see them (docs/launch-contract.md).
struct AttemptPaths {
  std::string attempt_dir;
  std::string work_dir;
  std::string output_dir;
  std::string results_dir;
  bool operator==(const AttemptPaths&) const = default;
};

struct RankLaunch {
  int pool = 0;
  int rank = 0;
  RankPlacement placement;
  std::map<std::string, std::string> env;  // complete, TP_* included
  bool operator==(const RankLaunch&) const = default;
};

struct LaunchSpec {
  std::string key;    // the attempt's key (DESIGN 5.3)
  std::string nonce;  // unique to this launch call
  std::string owner;
  std::string run_id;
  std::string step_name;
  int attempt = 0;
  std::string executor;
  std::string executor_config;  // a JSON object: its `config`, defaults merged in
  std::string image;
  std::string snapshot_id;
  AttemptPaths paths;
  std::vector<std::string> argv;
  std::vector<NodeDemand> demands;          // by pool
  std::vector<RankLaunch> ranks;            // in (pool, rank) order
  std::vector<std::string> overrides_json;  // by pool: content of its $TP_OVERRIDES_FILE, always an object
  int64_t log_max_bytes = 0;
  int heartbeat_ms = 0;
  bool operator==(const LaunchSpec&) const = default;
};

}  // namespace tp
