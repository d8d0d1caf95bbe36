#include "core/placement.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/share_out.h"

namespace tp::core {
namespace {

// One port for each pool of a live attempt: MASTER_PORT and torchrun's rendezvous.
constexpr int kFirstPort = 29500;
constexpr int kPortCount = 4000;
constexpr int kMaxCards = 64;

uint64_t LowestCards(int count) { return count >= kMaxCards ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// Nothing of a card that no node can have.
uint64_t BitOf(int card) { return card >= 0 && card < kMaxCards ? uint64_t{1} << card : 0; }

std::vector<int> FirstCards(uint64_t free, int count) {
  std::vector<int> cards;
  for (; static_cast<int>(cards.size()) < count && free != 0; free &= free - 1) cards.push_back(std::countr_zero(free));
  return cards;
}

}  // namespace

uint64_t Capacity::MaskOf(const std::vector<int>& cards) {
  uint64_t mask = 0;
  for (const int card : cards) mask |= BitOf(card);
  return mask;
}

void CardSet::Add(const Share& share) {
  if (nodes_.size() <= share.node) nodes_.resize(share.node + 1);
  Node& node = nodes_[share.node];
  node.cards |= share.cards;
  node.place = node.place || share.place;
}

void CardSet::Add(const CardSet& other) {
  if (nodes_.size() < other.nodes_.size()) nodes_.resize(other.nodes_.size());
  for (size_t node = 0; node < other.nodes_.size(); ++node) {
    nodes_[node].cards |= other.nodes_[node].cards;
    nodes_[node].place = nodes_[node].place || other.nodes_[node].place;
  }
}

Capacity::Capacity(const Registry& registry) { Reload(registry); }

void Capacity::Reload(const Registry& registry) {
  const std::vector<NodeCards> before = std::exchange(nodes_, {});
  node_index_.clear();
  series_.clear();
  everything_ = {};
  for (const auto& [name, series] : registry.series) AddSeries(name, series);
  FindNeighbours();
  for (size_t node = 0; node < nodes_.size(); ++node) everything_.Add({node, nodes_[node].cards, true});
  KeepHeld(before);
  ApplyWithheld();
}

void Capacity::Withhold(std::map<std::string, Withheld> withheld) {
  withheld_ = std::move(withheld);
  ApplyWithheld();
}

void Capacity::ApplyWithheld() {
  for (NodeCards& node : nodes_) {
    const auto found = withheld_.find(node.name);
    node.withheld = found == withheld_.end() ? Withheld() : found->second;
  }
}

void Capacity::AddSeries(const std::string& name, const Series& series) {
  SeriesNodes& of_series = series_[name];
  of_series.gpus_per_node = series.gpus_per_node;
  for (const Node& node : series.nodes) {
    const size_t index = NodeOf(node.name);
    nodes_[index].address = node.address;
    nodes_[index].cards |= LowestCards(series.gpus_per_node);
    nodes_[index].series.push_back(name);
    of_series.nodes.push_back(index);
  }
}

void Capacity::FindNeighbours() {
  for (auto& [name, series] : series_) series.neighbours = {name};
  for (const NodeCards& node : nodes_) {
    if (node.series.size() < 2) continue;
    for (const std::string& name : node.series) {
      series_.at(name).neighbours.insert(node.series.begin(), node.series.end());
    }
  }
}

// What held something keeps it, in the registry or not: its attempt still lives.
void Capacity::KeepHeld(const std::vector<NodeCards>& before) {
  for (const NodeCards& old : before) {
    if (old.held == 0 && old.place_holders == 0) continue;
    NodeCards& now = nodes_[NodeOf(old.name)];
    now.held = old.held;
    now.more_holders = old.more_holders;
    now.place_holders = old.place_holders;
    if (now.address.empty()) now.address = old.address;
  }
}

size_t Capacity::NodeOf(const std::string& name) {
  const auto [found, added] = node_index_.try_emplace(name, nodes_.size());
  if (added) nodes_.emplace_back().name = name;
  return found->second;
}

std::optional<size_t> Capacity::FindNode(const std::string& name) const {
  const auto found = node_index_.find(name);
  if (found == node_index_.end()) return std::nullopt;
  return found->second;
}

uint64_t Capacity::FreeOf(size_t node, const Assume& assume) const {
  uint64_t held = nodes_[node].held;
  if (assume.freed) held &= ~assume.freed->CardsOf(node);
  if (assume.blocked) held |= assume.blocked->CardsOf(node);
  const Withheld& withheld = nodes_[node].withheld;
  if (!assume.all_in_service) held |= withheld.node ? nodes_[node].cards : withheld.cards;
  return nodes_[node].cards & ~held;
}

bool Capacity::PlaceFree(size_t node, const Assume& assume) const {
  if (assume.blocked && assume.blocked->PlaceOf(node)) return false;
  if (nodes_[node].withheld.node && !assume.all_in_service) return false;
  return nodes_[node].place_holders == 0 || (assume.freed && assume.freed->PlaceOf(node));
}

bool Capacity::Fits(size_t node, const PoolShape& wanted, const Assume& assume) const {
  if (wanted.gpus_per_node == 0) return PlaceFree(node, assume);
  return std::popcount(FreeOf(node, assume)) >= wanted.gpus_per_node;
}

// Nodes that could serve a rank of the pool, in order, until `see` has enough.
template <typename See>
void Capacity::EachFitting(const PoolShape& wanted, const Avoid& avoid, const Assume& assume, const See& see) const {
  const auto series = series_.find(wanted.series);
  if (series == series_.end()) return;
  bool avoided_fits = false;
  for (const size_t node : series->second.nodes) {
    if (!Fits(node, wanted, assume)) continue;
    if (node == avoid.node) {
      avoided_fits = avoid.how == Avoided::kLast;
    } else if (!see(node)) {
      return;
    }
  }
  if (avoided_fits) see(*avoid.node);
}

// A node serves one rank of the shape.
bool Capacity::ChooseGreedily(const PoolShape& wanted, const Avoid& avoid, const Assume& assume,
                              std::vector<size_t>& used, std::vector<size_t>& chosen) const {
  const auto enough = [&] { return static_cast<int64_t>(chosen.size()) == wanted.nodes; };
  EachFitting(wanted, avoid, assume, [&](size_t node) {
    if (std::find(used.begin(), used.end(), node) == used.end()) chosen.push_back(node);
    return !enough();
  });
  if (!enough()) return false;
  used.insert(used.end(), chosen.begin(), chosen.end());
  return true;
}

std::optional<Capacity::Choice> Capacity::Choose(const ResolvedShape& shape, const Avoid& avoid,
                                                 const Assume& assume) const {
  std::vector<size_t> used;
  Choice choice(shape.pools.size());
  for (size_t i = 0; i < shape.pools.size(); ++i) {
    if (ChooseGreedily(shape.pools[i], avoid, assume, used, choice[i])) continue;
    // A pool before it may have taken what this one needs.
    if (i == 0) return std::nullopt;
    return ChooseTogether(shape, avoid, assume);
  }
  return choice;
}

std::optional<Capacity::Choice> Capacity::ChooseTogether(const ResolvedShape& shape, const Avoid& avoid,
                                                         const Assume& assume) const {
  std::vector<std::vector<size_t>> fitting(shape.pools.size());
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < shape.pools.size(); ++i) {
    wanted.push_back(shape.pools[i].nodes);
    EachFitting(shape.pools[i], avoid, assume, [&](size_t node) {
      fitting[i].push_back(node);
      return true;
    });
  }
  return ShareOut(fitting, wanted);
}

PoolPlacement Capacity::PoolOn(const std::vector<size_t>& nodes, const PoolShape& wanted, const Assume& assume) const {
  PoolPlacement pool;
  pool.series = wanted.series;
  pool.profile = wanted.profile;
  pool.roles = wanted.roles;
  pool.gpus_per_node = wanted.gpus_per_node;
  for (const size_t node : nodes) {
    pool.ranks.push_back(
        {nodes_[node].name, nodes_[node].address, FirstCards(FreeOf(node, assume), wanted.gpus_per_node)});
  }
  return pool;
}

std::optional<std::vector<PoolPlacement>> Capacity::Place(const ResolvedShape& shape, const std::string& avoid_node,
                                                          const Assume& assume) const {
  const std::optional<size_t> avoid = FindNode(avoid_node);
  auto choice = Choose(shape, {avoid, Avoided::kExcluded}, assume);
  if (!choice && avoid) choice = Choose(shape, {avoid, Avoided::kLast}, assume);
  if (!choice) return std::nullopt;
  std::set<int> ports;  // of the shape so far
  std::vector<PoolPlacement> pools;
  for (size_t i = 0; i < choice->size(); ++i) {
    const auto port = FreePort(ports);
    if (!port) return std::nullopt;
    ports.insert(*port);
    pools.push_back(PoolOn((*choice)[i], shape.pools[i], assume));
    pools.back().master_port = *port;
  }
  return pools;
}

bool Capacity::HasRoom(const ResolvedShape& shape, const Assume& assume) const {
  return Choose(shape, Avoid(), assume).has_value();
}

bool Capacity::CouldEverFit(const ResolvedShape& shape) const {
  return HasRoom(shape, {.freed = &everything_, .blocked = nullptr, .all_in_service = true});
}

std::optional<int> Capacity::FreePort(const std::set<int>& taken) const {
  for (int i = 0; i < kPortCount; ++i) {
    const int port = kFirstPort + (next_port_ + i) % kPortCount;
    if (!ports_.contains(port) && !taken.contains(port)) return port;
  }
  return std::nullopt;
}

void Capacity::TakeCard(NodeCards& node, int card) {
  if ((node.held & BitOf(card)) != 0) {
    ++node.more_holders[card];
  } else {
    node.held |= BitOf(card);
  }
}

void Capacity::ReleaseCard(NodeCards& node, int card) {
  const auto more = node.more_holders.find(card);
  if (more == node.more_holders.end()) {
    node.held &= ~BitOf(card);
  } else if (--more->second == 0) {
    node.more_holders.erase(more);
  }
}

void Capacity::Take(const std::vector<PoolPlacement>& placement) {
  for (const PoolPlacement& pool : placement) {
    ports_.insert(pool.master_port);
    next_port_ = (pool.master_port - kFirstPort + 1) % kPortCount;
    for (const RankPlacement& rank : pool.ranks) {
      NodeCards& node = nodes_[NodeOf(rank.node)];
      for (const int card : rank.cards) TakeCard(node, card);
      if (pool.gpus_per_node == 0) ++node.place_holders;
    }
  }
}

void Capacity::Release(const std::vector<PoolPlacement>& placement) {
  for (const PoolPlacement& pool : placement) {
    ports_.erase(pool.master_port);
    for (const RankPlacement& rank : pool.ranks) {
      NodeCards& node = nodes_[NodeOf(rank.node)];
      for (const int card : rank.cards) ReleaseCard(node, card);
      if (pool.gpus_per_node == 0 && node.place_holders > 0) --node.place_holders;
    }
  }
}

CardSet Capacity::CardsOf(const std::vector<PoolPlacement>& placement) const {
  CardSet cards;
  for (const CardSet::Share& share : SharesOf(placement)) cards.Add(share);
  return cards;
}

std::vector<CardSet::Share> Capacity::SharesOf(const std::vector<PoolPlacement>& placement) const {
  std::vector<CardSet::Share> shares;
  for (const PoolPlacement& pool : placement) {
    for (const RankPlacement& rank : pool.ranks) {
      if (const auto node = FindNode(rank.node)) {
        shares.push_back({*node, MaskOf(rank.cards), pool.gpus_per_node == 0});
      }
    }
  }
  return shares;
}

int64_t Capacity::FreeCards(const std::string& series) const {
  const auto found = series_.find(series);
  if (found == series_.end()) return 0;
  const bool cpu = found->second.gpus_per_node == 0;
  int64_t free = 0;
  for (const size_t node : found->second.nodes) {
    free += cpu ? static_cast<int64_t>(PlaceFree(node, {})) : std::popcount(FreeOf(node, {}));
  }
  return free;
}

int64_t Capacity::TotalCards(const std::string& series) const {
  const auto found = series_.find(series);
  if (found == series_.end()) return 0;
  return static_cast<int64_t>(found->second.nodes.size()) * std::max<int64_t>(found->second.gpus_per_node, 1);
}

std::vector<std::string> Capacity::WhyWithheld(const std::string& series) const {
  std::vector<std::string> why;
  const auto found = series_.find(series);
  if (found == series_.end()) return why;
  for (const size_t node : found->second.nodes) {
    const Withheld& withheld = nodes_[node].withheld;
    why.insert(why.end(), withheld.why.begin(), withheld.why.end());
  }
  return why;
}

std::set<std::string> Capacity::SeriesOf(const std::string& node) const {
  const auto found = FindNode(node);
  if (!found) return {};
  return {nodes_[*found].series.begin(), nodes_[*found].series.end()};
}

std::set<std::string> Capacity::Neighbours(const std::string& series) const {
  const auto found = series_.find(series);
  return found == series_.end() ? std::set<std::string>{series} : found->second.neighbours;
}

std::set<std::string> Capacity::SeriesOn(const std::vector<PoolPlacement>& placement) const {
  std::set<std::string> on;
  for (const PoolPlacement& pool : placement) {
    on.insert(pool.series);
    for (const RankPlacement& rank : pool.ranks) {
      if (const auto node = FindNode(rank.node)) on.insert(nodes_[*node].series.begin(), nodes_[*node].series.end());
    }
  }
  return on;
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
