// Whole cards by node and index (DESIGN 6, capacity). A node may belong to several series; a card is
// counted once. On a cpu series a node is one place. Pure; rebuilt at start from the live attempts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

class Capacity {
 public:
  explicit Capacity(const Registry& registry);

  // New nodes and cards; what is held stays held.
  void Reload(const Registry& registry);

  // All pools or none, lowest node then card index first, avoiding `avoid_node` where another fits.
  // Ports are those of PoolPlacement::master_port, unique among live attempts.
  std::optional<std::vector<PoolPlacement>> Place(const ResolvedShape& shape, const std::string& avoid_node) const;

  // Whether the shape could be placed if nothing were held.
  bool CouldEverFit(const ResolvedShape& shape) const;

  void Take(const std::vector<PoolPlacement>& placement);
  void Release(const std::vector<PoolPlacement>& placement);

  int64_t FreeCards(const std::string& series) const;
  int64_t TotalCards(const std::string& series) const;

  // Whether two of the placements hold the same card.
  static bool Oversubscribed(const std::vector<const std::vector<PoolPlacement>*>& live);

 private:
  enum class Look { kAtFree, kAtAll };  // kAtAll: as if nothing were held

  struct NodeCards {
    std::string address;
    int cards = 0;
    std::set<int> held;
    bool place_held = false;  // by a rank of a cpu series: a node is one place
  };

  std::optional<std::vector<PoolPlacement>> Find(const ResolvedShape& shape, const std::string& avoid_node,
                                                 Look look) const;
  std::vector<std::string> Candidates(const std::string& series, const std::string& avoid_node) const;
  std::optional<PoolPlacement> PlacePool(const PoolShape& wanted, const std::string& avoid_node, Look look,
                                         std::set<std::string>& used_nodes) const;
  static std::vector<int> CardsOf(const NodeCards& node, int wanted, Look look);
  std::optional<int> FreePort(const std::set<int>& taken, Look look) const;

  std::map<std::string, NodeCards> nodes_;
  std::map<std::string, std::vector<std::string>> series_nodes_;
  std::map<std::string, int> series_gpus_;
  std::set<int> ports_;
  int next_port_ = 0;  // ports are handed out in turn, so that a late process of the last job disturbs nobody
};

}  // namespace tp::core
