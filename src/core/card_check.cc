#include "core/card_check.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tp::core {
namespace {

std::string CardsText(const std::vector<int>& cards) {
  return fmt::format("{} {}", cards.size() == 1 ? "card" : "cards", fmt::join(cards, ", "));
}

// The same whichever of them came first.
std::string BothHold(const std::string& one, const std::string& other) {
  return fmt::format("{} and {} both hold", std::min(one, other), std::max(one, other));
}

}  // namespace

CardCheck::CardCheck(const Registry& registry) {
  for (const auto& [name, series] : registry.series) {
    for (const Node& node : series.nodes) {
      int& cards = cards_of_node_[node.name];
      cards = std::max(cards, series.gpus_per_node);
    }
  }
}

void CardCheck::Add(const Attempt& attempt) {
  std::set<std::string> unknown;
  for (const PoolPlacement& pool : attempt.placement) {
    for (const RankPlacement& rank : pool.ranks) {
      if (rank.node.empty()) continue;
      const auto node = cards_of_node_.find(rank.node);
      if (node == cards_of_node_.end()) {
        unknown.insert(rank.node);
      } else {
        AddCards(attempt.key, rank, node->second);
        if (pool.gpus_per_node == 0) AddPlace(attempt.key, rank.node);
      }
    }
  }
  for (const std::string& node : unknown) {
    faults_.push_back(fmt::format("{} runs on node {}, which is not in the registry: add it again, or tp stop the run",
                                  attempt.key, node));
  }
}

void CardCheck::AddCards(const std::string& key, const RankPlacement& rank, int cards_of_node) {
  std::vector<int> too_high;
  std::map<std::string, std::vector<int>> shared;  // by who else holds them
  for (const int card : rank.cards) {
    if (card < 0 || card >= cards_of_node) {
      too_high.push_back(card);
      continue;
    }
    const auto [holder, first] = holders_.try_emplace({rank.node, card}, key);
    if (!first) shared[holder->second].push_back(card);
  }
  if (!too_high.empty()) {
    faults_.push_back(
        fmt::format("{} holds {} of node {}, which has {} in the registry: correct gpus_per_node, or tp "
                    "stop the run",
                    key, CardsText(too_high), rank.node, cards_of_node));
  }
  for (const auto& [other, cards] : shared) {
    faults_.push_back(
        fmt::format("{} {} of node {}: tp stop one of the runs", BothHold(key, other), CardsText(cards), rank.node));
  }
}

void CardCheck::AddPlace(const std::string& key, const std::string& node) {
  const auto [holder, first] = place_holders_.try_emplace(node, key);
  if (first) return;
  faults_.push_back(
      fmt::format("{} node {}, which is one place: tp stop one of the runs", BothHold(key, holder->second), node));
}

}  // namespace tp::core
