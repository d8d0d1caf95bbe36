// Which cards are broken in truth, and the jobs that end by it.
#include <algorithm>

#include <fmt/format.h>

#include "sim/world.h"

namespace tp::sim {
namespace {

bool Uses(const RankTruth& rank, const core::NodePart& part) {
  const std::vector<int>& cards = rank.placement.cards;
  return rank.placement.node == part.node && std::find(cards.begin(), cards.end(), part.card) != cards.end();
}

}  // namespace

bool World::BreakCard(const core::NodePart& part) {
  if (!WhyBroken(part).empty()) return false;
  card_faults_.push_back({.part = part,
                          .why = fmt::format("fault {}", card_faults_.size() + 1),
                          .broke_us = timeline_.now_us(),
                          .mended_us = {}});
  journal_.Note("world: card {} of {} breaks", part.card, part.node);
  return true;
}

void World::MendCard(const core::NodePart& part) {
  for (CardTruth& fault : card_faults_) {
    if (fault.part == part && !fault.mended_us) fault.mended_us = timeline_.now_us();
  }
}

std::string World::WhyBroken(const core::NodePart& part) const {
  for (const CardTruth& fault : card_faults_) {
    if (fault.part == part && !fault.mended_us) return fault.why;
  }
  return "";
}

std::vector<core::NodePart> World::BusyCards() const {
  std::vector<core::NodePart> cards;
  for (const auto& [key, attempt] : attempts_) {
    for (const RankTruth& rank : attempt.ranks) {
      if (!rank.process() || !rank.started_us) continue;
      for (const int card : rank.placement.cards) cards.push_back({.node = rank.placement.node, .card = card});
    }
  }
  return cards;
}

void World::FailRanksOn(const core::NodePart& part, int code) {
  EndRecord end;
  end.code = code;
  for (auto& [key, attempt] : attempts_) {
    for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
      if (attempt.ranks[rank].started_us && Uses(attempt.ranks[rank], part)) End(attempt, rank, end);
    }
  }
}

std::vector<CardTruth> World::FaultsOf(const AttemptTruth& attempt) const {
  std::vector<CardTruth> faults;
  if (attempt.objects.empty()) return faults;
  const int64_t since_us = attempt.objects.front().created_us;
  for (const CardTruth& fault : card_faults_) {
    if (fault.mended_us.value_or(since_us) < since_us) continue;
    const bool own = std::any_of(attempt.ranks.begin(), attempt.ranks.end(),
                                 [&](const RankTruth& rank) { return Uses(rank, fault.part); });
    if (own) faults.push_back(fault);
  }
  return faults;
}

}  // namespace tp::sim
