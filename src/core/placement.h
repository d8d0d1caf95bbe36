// Whole cards by node and index (DESIGN 6, capacity). A node may belong to several series; a card is
// counted once. On a cpu series a node is one place. Pure; rebuilt at start from the live attempts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

// Some cards and places of a Capacity, by its own numbering of nodes; of no use to another one, nor after
// a reload.
class CardSet {
 public:
  // What one rank holds.
  struct Share {
    size_t node = 0;
    uint64_t cards = 0;
    bool place = false;
  };

  void Add(const Share& share);
  void Add(const CardSet& other);
  uint64_t CardsOf(size_t node) const { return node < nodes_.size() ? nodes_[node].cards : 0; }
  bool PlaceOf(size_t node) const { return node < nodes_.size() && nodes_[node].place; }
  bool empty() const { return nodes_.empty(); }
  bool operator==(const CardSet&) const = default;

 private:
  struct Node {
    uint64_t cards = 0;
    bool place = false;
    bool operator==(const Node&) const = default;
  };
  std::vector<Node> nodes_;
};

class Capacity {
 public:
  // What a search takes for free although it is held, and for held although it is free.
  struct Assume {
    const CardSet* freed = nullptr;
    const CardSet* blocked = nullptr;
    bool all_in_service = false;  // what is withheld, too
  };

  // What takes no new jobs although nobody holds it, by node (core/node_book.h, cards that others hold).
  struct Withheld {
    uint64_t cards = 0;
    bool node = false;             // all of them, and its place
    std::vector<std::string> why;  // `node-3 is drained by ada: new disk`
    bool operator==(const Withheld&) const = default;
  };

  explicit Capacity(const Registry& registry);

  // New nodes and cards; what is held stays held.
  void Reload(const Registry& registry);

  // All pools or none: of all ways there are, the first by the pools' order, then by node, then by card
  // index; `avoid_node` only where there is no way without it.
  // Ports are those of PoolPlacement::master_port, unique among live attempts.
  std::optional<std::vector<PoolPlacement>> Place(const ResolvedShape& shape, const std::string& avoid_node) const {
    return Place(shape, avoid_node, Assume{});
  }
  std::optional<std::vector<PoolPlacement>> Place(const ResolvedShape& shape, const std::string& avoid_node,
                                                  const Assume& assume) const;

  // The same search without its result: counts nothing and allocates little.
  bool HasRoom(const ResolvedShape& shape, const Assume& assume) const;

  // Whether the shape could be placed if nothing were held.
  bool CouldEverFit(const ResolvedShape& shape) const;

  // In place of what was withheld before. Nodes that are not in the registry keep it for when they come.
  void Withhold(std::map<std::string, Withheld> withheld);
  const std::map<std::string, Withheld>& withheld() const { return withheld_; }
  // Of the series' nodes, in their order.
  std::vector<std::string> WhyWithheld(const std::string& series) const;

  // Attempts that hold the same card, which only damage brings about, each keep it: it is free once all of them
  // have released it.
  void Take(const std::vector<PoolPlacement>& placement);
  void Release(const std::vector<PoolPlacement>& placement);

  // Cards of nodes that are not in the registry any more are left out.
  CardSet CardsOf(const std::vector<PoolPlacement>& placement) const;
  std::vector<CardSet::Share> SharesOf(const std::vector<PoolPlacement>& placement) const;

  int64_t FreeCards(const std::string& series) const;
  int64_t TotalCards(const std::string& series) const;
  // Series that share a node with it, itself included.
  std::set<std::string> Neighbours(const std::string& series) const;

  // That the node belongs to.
  std::set<std::string> SeriesOf(const std::string& node) const;

  // Series that its nodes belong to, besides those it is placed in.
  std::set<std::string> SeriesOn(const std::vector<PoolPlacement>& placement) const;

  // A bit for each; cards that no node can have are left out.
  static uint64_t MaskOf(const std::vector<int>& cards);

  // Whether two of the placements hold the same card.
  static bool Oversubscribed(const std::vector<const std::vector<PoolPlacement>*>& live);

 private:
  struct NodeCards {
    std::string name;
    std::string address;
    uint64_t cards = 0;  // that it has
    uint64_t held = 0;
    Withheld withheld;
    std::map<int, int> more_holders;  // of held cards: how many besides the first
    int place_holders = 0;            // ranks of a cpu series: a node is one place
    std::vector<std::string> series;  // that it belongs to
  };
  struct SeriesNodes {
    int gpus_per_node = 0;
    std::vector<size_t> nodes;
    std::set<std::string> neighbours;  // series that share a node with it, itself included
  };
  // Nodes for each pool, or nothing.
  using Choice = std::vector<std::vector<size_t>>;

  void AddSeries(const std::string& name, const Series& series);
  void FindNeighbours();
  void ApplyWithheld();
  static void TakeCard(NodeCards& node, int card);
  static void ReleaseCard(NodeCards& node, int card);
  void KeepHeld(const std::vector<NodeCards>& before);
  size_t NodeOf(const std::string& name);
  uint64_t FreeOf(size_t node, const Assume& assume) const;
  bool PlaceFree(size_t node, const Assume& assume) const;
  bool Fits(size_t node, const PoolShape& wanted, const Assume& assume) const;
  // What a choice of nodes does with one that is better not used.
  enum class Avoided : uint8_t { kExcluded, kLast };
  struct Avoid {
    std::optional<size_t> node;
    Avoided how = Avoided::kLast;
  };
  template <typename See>
  void EachFitting(const PoolShape& wanted, const Avoid& avoid, const Assume& assume, const See& see) const;
  bool ChooseGreedily(const PoolShape& wanted, const Avoid& avoid, const Assume& assume, std::vector<size_t>& used,
                      std::vector<size_t>& chosen) const;
  std::optional<Choice> ChooseTogether(const ResolvedShape& shape, const Avoid& avoid, const Assume& assume) const;
  std::optional<Choice> Choose(const ResolvedShape& shape, const Avoid& avoid, const Assume& assume) const;
  PoolPlacement PoolOn(const std::vector<size_t>& nodes, const PoolShape& wanted, const Assume& assume) const;
  std::optional<int> FreePort(const std::set<int>& taken) const;
  std::optional<size_t> FindNode(const std::string& name) const;

  std::vector<NodeCards> nodes_;  // by name
  std::map<std::string, size_t> node_index_;
  std::map<std::string, SeriesNodes> series_;
  CardSet everything_;
  std::map<std::string, Withheld> withheld_;  // by node
  std::set<int> ports_;
  int next_port_ = 0;  // ports are handed out in turn, so that a late process of the last job disturbs nobody
};

}  // namespace tp::core
