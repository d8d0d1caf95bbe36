// What live attempts hold, held against the registry and against each other (DESIGN 6): a database that was damaged or
// edited, or a registry that lost nodes, must not go unnoticed. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

class CardCheck {
 public:
  explicit CardCheck(const Registry& registry);

  // A live attempt; in any order. Ranks whose node the engine chooses are none of tpd's business.
  void Add(const Attempt& attempt);

  // A sentence for each fault, for an admin. Nothing of it is released: what holds a card keeps it until it ends.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  using Holders = std::map<std::pair<std::string, int>, std::string>;  // by node and card: the first attempt's key

  void AddCards(const std::string& key, const RankPlacement& rank, int cards_of_node);
  void AddPlace(const std::string& key, const std::string& node);

  std::map<std::string, int> cards_of_node_;
  Holders holders_;
  std::map<std::string, std::string> place_holders_;  // by node
  std::vector<std::string> faults_;
};

}  // namespace tp::core
