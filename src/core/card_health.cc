#include "core/card_health.h"

#include <algorithm>

#include <fmt/format.h>

namespace tp::core {
namespace {

bool Holds(const std::vector<NodePart>& cards, const CardFault& fault) {
  return std::find(cards.begin(), cards.end(), NodePart{.node = fault.node, .card = fault.card}) != cards.end();
}

// Of two lines of a log the older one is no news, whatever it says: it is what is left where the newer one has gone.
bool IsAnother(const KnownFault& known, const CardSight& card) {
  constexpr absl::Duration kInexact = absl::Seconds(5);
  if (known.broke_at && card.broke_at) return *card.broke_at > *known.broke_at + kInexact;
  return known.why != card.broken;
}

}  // namespace

std::vector<CardFault> NewFaults(const std::vector<CardSight>& seen, KnownFaults& known) {
  std::vector<CardFault> faults;
  for (const CardSight& card : seen) {
    const NodePart part{.node = card.node, .card = card.card};
    const auto before = known.find(part);
    if (card.broken.empty()) {
      if (before != known.end()) known.erase(before);
    } else if (before == known.end() || IsAnother(before->second, card)) {
      known.insert_or_assign(part, KnownFault{.why = card.broken, .broke_at = card.broke_at});
      faults.push_back({.node = card.node, .card = card.card, .why = card.broken});
    }
  }
  return faults;
}

std::vector<NodePart> RealCardsOf(const Attempt& attempt) {
  std::vector<NodePart> cards;
  for (size_t i = 0; i < attempt.placement.size(); ++i) {
    if (i < attempt.shape.pools.size() && attempt.shape.pools[i].demand.virtual_cards) continue;
    for (const RankPlacement& rank : attempt.placement[i].ranks) {
      for (const int card : rank.cards) cards.push_back({.node = rank.node, .card = card});
    }
  }
  return cards;
}

bool OnWatchedNodes(const Attempt& attempt, const std::set<std::string>& nodes) {
  const std::vector<NodePart> cards = RealCardsOf(attempt);
  return !cards.empty() &&
         std::all_of(cards.begin(), cards.end(), [&](const NodePart& card) { return nodes.contains(card.node); });
}

bool HasCardFault(const Attempt& attempt, const CardFault& fault) {
  const std::vector<CardFault>& known = attempt.sight.card_faults;
  return std::any_of(known.begin(), known.end(),
                     [&](const CardFault& one) { return one.node == fault.node && one.card == fault.card; });
}

bool AnyNewCardFault(const Attempt& attempt, const std::vector<CardFault>& faults) {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const CardFault& fault) { return !HasCardFault(attempt, fault); });
}

std::vector<CardFault> FaultsUnder(const Attempt& attempt, const std::vector<CardFault>& faults) {
  std::vector<CardFault> under;
  const std::vector<NodePart> cards = RealCardsOf(attempt);
  std::copy_if(faults.begin(), faults.end(), std::back_inserter(under),
               [&](const CardFault& fault) { return Holds(cards, fault) && !HasCardFault(attempt, fault); });
  return under;
}

std::vector<CardFault> FaultsSince(std::vector<CardFault> faults, absl::Time began,
                                   const std::map<NodePart, absl::Time>& cleared) {
  std::erase_if(faults, [&](const CardFault& fault) {
    const auto since = cleared.find({.node = fault.node, .card = fault.card});
    return since != cleared.end() && began <= since->second;
  });
  return faults;
}

std::vector<CardFault> StillBroken(const std::vector<CardSight>& seen, UntakenFaults& untaken) {
  std::vector<CardFault> faults;
  for (const CardSight& card : seen) {
    const auto found = untaken.find({.node = card.node, .card = card.card});
    if (found == untaken.end()) continue;
    if (!card.broken.empty()) faults.push_back(found->second);
    untaken.erase(found);
  }
  return faults;
}

std::vector<CardHeldElsewhere> CardsOfStrangers(const std::vector<CardSight>& seen, absl::Time began,
                                                const std::set<NodePart>& held,
                                                const std::map<NodePart, absl::Time>& released,
                                                const std::vector<CardHeldElsewhere>& before) {
  std::set<std::string> nodes;
  std::vector<CardHeldElsewhere> strangers;
  for (const CardSight& card : seen) {
    nodes.insert(card.node);
    const NodePart part{.node = card.node, .card = card.card};
    if (card.held_by.empty() || held.contains(part)) continue;
    const auto given_back = released.find(part);
    if (given_back != released.end() && began <= given_back->second) continue;
    strangers.push_back({part, card.held_by});
  }
  std::copy_if(before.begin(), before.end(), std::back_inserter(strangers), [&](const CardHeldElsewhere& card) {
    return !nodes.contains(card.part.node) && !held.contains(card.part);
  });
  return strangers;
}

std::optional<bool> AllIdle(const Attempt& attempt, const std::map<NodePart, CardSight>& seen) {
  const std::vector<NodePart> cards = RealCardsOf(attempt);
  if (cards.empty()) return std::nullopt;
  bool idle = true;
  for (const NodePart& card : cards) {
    const auto sight = seen.find(card);
    if (sight == seen.end() || !sight->second.utilization_percent) return std::nullopt;
    idle = idle && *sight->second.utilization_percent == 0;
  }
  return idle;
}

std::string IdleSentence(int64_t cards, absl::Duration idle) {
  const int64_t minutes = absl::ToInt64Minutes(idle);
  const std::string time =
      minutes < 60 ? fmt::format("{} min", minutes) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return cards == 1 ? fmt::format("its card has done nothing for {}", time)
                    : fmt::format("its {} cards have done nothing for {}", cards, time);
}

}  // namespace tp::core
