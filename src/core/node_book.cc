#include "core/node_book.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/judge.h"

namespace tp::core {
namespace {

// Whether a failure of this kind is more likely the node's than the job's.
bool IsOfNode(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNodeLost:
    case FailureKind::kGpuLost:
    case FailureKind::kStorage:
    case FailureKind::kLost:
      return true;
    case FailureKind::kUserExit:
    case FailureKind::kUserOom:
    case FailureKind::kTimeLimit:
    case FailureKind::kEngineRejected:
    case FailureKind::kImage:
    case FailureKind::kStartTimeout:
    case FailureKind::kPreempted:
    case FailureKind::kEvicted:
    case FailureKind::kDependency:
      return false;
  }
  return false;
}

}  // namespace

void NodeBook::Put(NodeMark mark) {
  NodePart part = mark.part;
  marks_.insert_or_assign(std::move(part), std::move(mark));
}

void NodeBook::Drop(const NodePart& part) { marks_.erase(part); }

void NodeBook::Add(Strike strike) {
  std::vector<Strike>& strikes = strikes_[strike.node];
  std::erase_if(strikes, [&](const Strike& old) { return old.at + kStrikeLife <= strike.at; });
  strikes.push_back(std::move(strike));
}

void NodeBook::DropStrikes(const std::string& node) { strikes_.erase(node); }

std::vector<Strike> NodeBook::StrikesOf(const std::string& node, absl::Time now) const {
  std::vector<Strike> counting;
  const auto found = strikes_.find(node);
  if (found == strikes_.end()) return counting;
  std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(counting),
               [now](const Strike& strike) { return now < strike.at + kStrikeLife; });
  return counting;
}

const NodeMark* NodeBook::Find(const NodePart& part) const {
  const auto found = marks_.find(part);
  return found == marks_.end() ? nullptr : &found->second;
}

bool NodeBook::IsDead(const std::string& node) const {
  const NodeMark* const mark = Find({.node = node});
  return mark != nullptr && mark->kind == MarkKind::kDead;
}

std::optional<NodeMark> NodeBook::MarkForStrikes(const std::string& node, absl::Time now) const {
  if (Find({.node = node}) != nullptr) return std::nullopt;
  const std::vector<Strike> strikes = StrikesOf(node, now);
  std::set<std::string> owners;
  for (const Strike& strike : strikes) owners.insert(strike.owner);
  if (strikes.size() < kStrikesOut || owners.size() < kStrikeOwners) return std::nullopt;
  return NodeMark{.part = {.node = node},
                  .kind = MarkKind::kDrained,
                  .reason = fmt::format("{} attempts of {} users were lost there within a day, the last one: {}",
                                        strikes.size(), owners.size(), Name(strikes.back().kind)),
                  .by = std::string(kTpd),
                  .at = now};
}

std::string BadNode(const Attempt& attempt) {
  const bool card = !attempt.sight.card_faults.empty() && FailureOf(attempt).kind == FailureKind::kGpuLost;
  if (card) return attempt.sight.card_faults.front().node;
  for (const RankObservation& rank : attempt.ranks) {
    const bool bad = !rank.ended || rank.ended->signalled_by == SignalledBy::kOther;
    const PoolPlacement& pool = attempt.placement[static_cast<size_t>(rank.pool)];
    if (bad) return pool.ranks[static_cast<size_t>(rank.rank)].node;
  }
  return "";
}

std::optional<Strike> StrikeOf(const Attempt& attempt, const AttemptRef& ref, const std::string& owner,
                               const PastAttempt& left) {
  if (!left.failure || !IsOfNode(left.failure->kind)) return std::nullopt;
  std::string node = BadNode(attempt);
  if (node.empty()) return std::nullopt;
  return Strike{
      .node = std::move(node), .attempt = ref, .owner = owner, .kind = left.failure->kind, .at = left.ended_at};
}

std::string DescribeMark(const NodeMark& mark) {
  const std::string_view word = mark.kind == MarkKind::kDead ? "declared dead" : "drained";
  return mark.reason.empty() ? fmt::format("{} by {}", word, mark.by)
                             : fmt::format("{} by {}: {}", word, mark.by, mark.reason);
}

}  // namespace tp::core
