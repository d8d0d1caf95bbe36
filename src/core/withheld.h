// What keeps new jobs off nodes and cards, taken together. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/node_book.h"
#include "core/placement.h"

namespace tp::core {

// A card that somebody besides this deployment holds, as an engine saw it last.
struct CardHeldElsewhere {
  NodePart part;  // a card, never the whole node
  std::string holder;
  bool operator==(const CardHeldElsewhere&) const = default;
};

std::map<std::string, Capacity::Withheld> WithheldBy(const NodeBook& book,
                                                     const std::vector<CardHeldElsewhere>& elsewhere);

}  // namespace tp::core
