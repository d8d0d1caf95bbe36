#include "core/placement.h"

#include <algorithm>

namespace tp::core {
namespace {

// One port for each pool of a live attempt: MASTER_PORT and torchrun's rendezvous.
constexpr int kFirstPort = 29500;
constexpr int kPortCount = 4000;

}  // namespace

Capacity::Capacity(const Registry& registry) { Reload(registry); }

void Capacity::Reload(const Registry& registry) {
  std::map<std::string, NodeCards> old;
  old.swap(nodes_);
  series_nodes_.clear();
  series_gpus_.clear();
  for (const auto& [name, series] : registry.series) {
    series_gpus_[name] = series.gpus_per_node;
    for (const Node& node : series.nodes) {
      NodeCards& cards = nodes_[node.name];
      cards.address = node.address;
      cards.cards = std::max(cards.cards, series.gpus_per_node);
      series_nodes_[name].push_back(node.name);
    }
  }
  for (auto& [name, cards] : old) {
    NodeCards& now = nodes_[name];
    now.held = std::move(cards.held);
    now.place_held = cards.place_held;
    if (now.address.empty()) now.address = cards.address;
  }
}

std::optional<std::vector<PoolPlacement>> Capacity::Place(const ResolvedShape& shape,
                                                          const std::string& avoid_node) const {
  return Find(shape, avoid_node, Look::kAtFree);
}

bool Capacity::CouldEverFit(const ResolvedShape& shape) const { return Find(shape, "", Look::kAtAll).has_value(); }

std::optional<std::vector<PoolPlacement>> Capacity::Find(const ResolvedShape& shape, const std::string& avoid_node,
                                                         Look look) const {
  std::set<std::string> used_nodes;  // a node serves one rank of the shape
  std::set<int> ports;               // of the shape so far
  std::vector<PoolPlacement> pools;
  for (const PoolShape& wanted : shape.pools) {
    auto pool = PlacePool(wanted, avoid_node, look, used_nodes);
    if (!pool) return std::nullopt;
    const auto port = FreePort(ports, look);
    if (!port) return std::nullopt;
    ports.insert(*port);
    pool->master_port = *port;
    pools.push_back(*std::move(pool));
  }
  return pools;
}

std::vector<std::string> Capacity::Candidates(const std::string& series, const std::string& avoid_node) const {
  const auto found = series_nodes_.find(series);
  if (found == series_nodes_.end()) return {};
  std::vector<std::string> nodes = found->second;
  std::stable_partition(nodes.begin(), nodes.end(), [&](const std::string& node) { return node != avoid_node; });
  return nodes;
}

std::optional<PoolPlacement> Capacity::PlacePool(const PoolShape& wanted, const std::string& avoid_node, Look look,
                                                 std::set<std::string>& used_nodes) const {
  PoolPlacement pool;
  pool.series = wanted.series;
  pool.profile = wanted.profile;
  pool.roles = wanted.roles;
  pool.gpus_per_node = wanted.gpus_per_node;
  for (const std::string& name : Candidates(wanted.series, avoid_node)) {
    if (static_cast<int64_t>(pool.ranks.size()) == wanted.nodes) break;
    if (used_nodes.contains(name)) continue;
    const NodeCards& node = nodes_.at(name);
    if (wanted.gpus_per_node == 0 && node.place_held && look == Look::kAtFree) continue;
    std::vector<int> cards = CardsOf(node, wanted.gpus_per_node, look);
    if (static_cast<int>(cards.size()) < wanted.gpus_per_node) continue;
    used_nodes.insert(name);
    pool.ranks.push_back({name, node.address, std::move(cards)});
  }
  if (static_cast<int64_t>(pool.ranks.size()) < wanted.nodes) return std::nullopt;
  return pool;
}

std::vector<int> Capacity::CardsOf(const NodeCards& node, int wanted, Look look) {
  std::vector<int> cards;
  for (int card = 0; card < node.cards && static_cast<int>(cards.size()) < wanted; ++card) {
    if (look == Look::kAtAll || !node.held.contains(card)) cards.push_back(card);
  }
  return cards;
}

std::optional<int> Capacity::FreePort(const std::set<int>& taken, Look look) const {
  for (int i = 0; i < kPortCount; ++i) {
    const int port = kFirstPort + (next_port_ + i) % kPortCount;
    const bool held = look == Look::kAtFree && ports_.contains(port);
    if (!held && !taken.contains(port)) return port;
  }
  return std::nullopt;
}

void Capacity::Take(const std::vector<PoolPlacement>& placement) {
  for (const PoolPlacement& pool : placement) {
    ports_.insert(pool.master_port);
    next_port_ = (pool.master_port - kFirstPort + 1) % kPortCount;
    for (const RankPlacement& rank : pool.ranks) {
      NodeCards& node = nodes_[rank.node];
      node.held.insert(rank.cards.begin(), rank.cards.end());
      if (pool.gpus_per_node == 0) node.place_held = true;
    }
  }
}

void Capacity::Release(const std::vector<PoolPlacement>& placement) {
  for (const PoolPlacement& pool : placement) {
    ports_.erase(pool.master_port);
    for (const RankPlacement& rank : pool.ranks) {
      NodeCards& node = nodes_[rank.node];
      for (int card : rank.cards) node.held.erase(card);
      if (pool.gpus_per_node == 0) node.place_held = false;
    }
  }
}

int64_t Capacity::FreeCards(const std::string& series) const {
  const bool cpu = !series_gpus_.contains(series) || series_gpus_.at(series) == 0;
  int64_t free = 0;
  for (const std::string& name : Candidates(series, "")) {
    const NodeCards& node = nodes_.at(name);
    free += cpu ? (node.place_held ? 0 : 1) : static_cast<int64_t>(CardsOf(node, node.cards, Look::kAtFree).size());
  }
  return free;
}

int64_t Capacity::TotalCards(const std::string& series) const {
  const int64_t gpus = series_gpus_.contains(series) ? series_gpus_.at(series) : 0;
  const auto nodes = series_nodes_.find(series);
  if (nodes == series_nodes_.end()) return 0;
  return static_cast<int64_t>(nodes->second.size()) * std::max<int64_t>(gpus, 1);
}

bool Capacity::Oversubscribed(const std::vector<const std::vector<PoolPlacement>*>& live) {
  std::set<std::pair<std::string, int>> held;
  for (const auto* placement : live) {
    for (const PoolPlacement& pool : *placement) {
      for (const RankPlacement& rank : pool.ranks) {
        for (int card : rank.cards) {
          if (!held.emplace(rank.node, card).second) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace tp::core
