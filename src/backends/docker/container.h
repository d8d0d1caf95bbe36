// What an engine says of a container. Pure: JSON in, values out; of anything unexpected, nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "tp/backend.h"
#include "tp/observation.h"

namespace tp::docker {

inline constexpr char kDeploymentLabel[] = "tp.deployment";
inline constexpr char kKeyLabel[] = "tp.key";
inline constexpr char kNonceLabel[] = "tp.nonce";
inline constexpr char kPoolLabel[] = "tp.pool";
inline constexpr char kRankLabel[] = "tp.rank";
inline constexpr char kDirectoryLabel[] = "tp.attempt-dir";

enum class ContainerState : uint8_t {
  kCreated,  // exists and was never started
  kActive,   // running, paused, restarting, being removed: processes of it may live
  kExited,
};

struct Container {
  std::string id;
  std::string name;  // without the slash before it
  std::map<std::string, std::string> labels;
  ContainerState state = ContainerState::kActive;

  std::string Label(const std::string& label) const;
  // `(pool, rank)` of its labels; nothing: it has none.
  std::optional<std::pair<int, int>> Rank() const;
};

// One item of GET /containers/json. Nothing where it is none.
std::optional<std::vector<Container>> ParseContainerList(std::string_view json);

// GET /containers/ID/json.
struct Inspected {
  Container container;
  bool started_once = false;
  int exit_code = 0;
  bool oom_killed = false;
  std::string error;  // the engine's words, of a start that failed
  absl::Time finished_at = absl::InfinitePast();
};
std::optional<Inspected> ParseInspect(std::string_view json);

// How an exited container ended, in the engine's words alone. `in_outage`: it ended while the engine was away or
// right after, so that an exit 0 is no proof of anything.
EngineEnd EndOf(const Inspected& inspected, bool in_outage);

// Cards that a running container of somebody else holds, of `known` cards that there are.
std::vector<ForeignCard> CardsHeldBy(std::string_view inspect_json, int known);

}  // namespace tp::docker
