#include "core/withheld.h"

#include <fmt/format.h>

namespace tp::core {
namespace {

void Withhold(Capacity::Withheld& from, const NodePart& part, std::string why) {
  if (part.whole()) {
    from.node = true;
  } else {
    from.cards |= Capacity::MaskOf({part.card});
  }
  from.why.push_back(std::move(why));
}

std::string NameOf(const NodePart& part) {
  return part.whole() ? part.node : fmt::format("card {} of {}", part.card, part.node);
}

}  // namespace

std::map<std::string, Capacity::Withheld> WithheldBy(const NodeBook& book,
                                                     const std::vector<CardHeldElsewhere>& elsewhere) {
  std::map<std::string, Capacity::Withheld> withheld;
  for (const auto& [part, mark] : book.marks()) {
    Withhold(withheld[part.node], part, fmt::format("{} is {}", NameOf(part), DescribeMark(mark)));
  }
  for (const CardHeldElsewhere& held : elsewhere) {
    Withhold(withheld[held.part.node], held.part, fmt::format("{} is held by {}", NameOf(held.part), held.holder));
  }
  return withheld;
}

}  // namespace tp::core
