#include "core/share_out.h"

#include <map>
#include <set>
#include <utility>

namespace tp::core {
namespace {

// Nodes that serve the same pools are of one kind and counted only.
struct Kind {
  std::vector<bool> serves;  // by pool
  int64_t left = 0;
};

// Which ranks go to which kinds, as counts. Ranks are given one after the other, and make way for each other
// (augmenting paths).
class Assignment {
 public:
  Assignment(std::vector<Kind> kinds, size_t pools)
      : kinds_(std::move(kinds)), given_(kinds_.size(), std::vector<int64_t>(pools)), used_(kinds_.size()) {}

  // One rank more of the pool, on whatever kind.
  bool Give(size_t pool) {
    std::vector<bool> seen(kinds_.size());
    return Give(pool, seen);
  }

  // A rank of the pool goes to a node of this kind for good; false: then another one would go without.
  bool Settle(size_t pool, size_t kind) {
    if (given_[kind][pool] == 0 && !MoveTo(pool, kind)) return false;
    given_[kind][pool] -= 1;
    used_[kind] -= 1;
    kinds_[kind].left -= 1;
    return true;
  }

 private:
  bool Give(size_t pool, std::vector<bool>& seen) {
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (!kinds_[kind].serves[pool] || seen[kind]) continue;
      seen[kind] = true;
      if (GiveOf(kind, pool, seen)) return true;
    }
    return false;
  }

  bool GiveOf(size_t kind, size_t pool, std::vector<bool>& seen) {
    if (used_[kind] < kinds_[kind].left) {
      used_[kind] += 1;
    } else if (!MakeWay(kind, seen)) {
      return false;
    }
    given_[kind][pool] += 1;
    return true;
  }

  // A rank of some pool moves from this kind to another one.
  bool MakeWay(size_t kind, std::vector<bool>& seen) {
    for (size_t pool = 0; pool < given_[kind].size(); ++pool) {
      if (given_[kind][pool] == 0 || !Give(pool, seen)) continue;
      given_[kind][pool] -= 1;
      return true;
    }
    return false;
  }

  // A rank of the pool moves to this kind, from whichever kind helps the one that makes way for it.
  bool MoveTo(size_t pool, size_t kind) {
    for (size_t from = 0; from < kinds_.size(); ++from) {
      if (given_[from][pool] == 0) continue;
      given_[from][pool] -= 1;
      used_[from] -= 1;
      std::vector<bool> seen(kinds_.size());
      seen[kind] = true;
      if (GiveOf(kind, pool, seen)) return true;
      given_[from][pool] += 1;
      used_[from] += 1;
    }
    return false;
  }

  std::vector<Kind> kinds_;
  std::vector<std::vector<int64_t>> given_;  // by kind and pool
  std::vector<int64_t> used_;                // of each kind
};

// The kinds of all nodes, and of which each node is.
struct Sorted {
  std::vector<Kind> kinds;
  std::map<size_t, size_t> kind_of;
};

Sorted SortByKind(const std::vector<std::vector<size_t>>& fitting) {
  std::map<size_t, std::vector<bool>> serves;
  for (size_t pool = 0; pool < fitting.size(); ++pool) {
    for (const size_t node : fitting[pool]) {
      serves.try_emplace(node, std::vector<bool>(fitting.size())).first->second[pool] = true;
    }
  }
  Sorted sorted;
  std::map<std::vector<bool>, size_t> known;
  for (const auto& [node, pools] : serves) {
    const auto [kind, added] = known.try_emplace(pools, sorted.kinds.size());
    if (added) sorted.kinds.push_back({pools, 0});
    sorted.kinds[kind->second].left += 1;
    sorted.kind_of.emplace(node, kind->second);
  }
  return sorted;
}

}  // namespace

std::optional<std::vector<std::vector<size_t>>> ShareOut(const std::vector<std::vector<size_t>>& fitting,
                                                         const std::vector<int64_t>& wanted) {
  Sorted sorted = SortByKind(fitting);
  const size_t kinds = sorted.kinds.size();
  Assignment assignment(std::move(sorted.kinds), fitting.size());
  for (size_t pool = 0; pool < wanted.size(); ++pool) {
    for (int64_t rank = 0; rank < wanted[pool]; ++rank) {
      if (!assignment.Give(pool)) return std::nullopt;
    }
  }
  std::set<size_t> gone;
  std::vector<std::vector<size_t>> shares(fitting.size());
  for (size_t pool = 0; pool < fitting.size(); ++pool) {
    std::vector<bool> needed(kinds);  // by other pools: what is needed there stays so
    for (const size_t node : fitting[pool]) {
      if (static_cast<int64_t>(shares[pool].size()) == wanted[pool]) break;
      const size_t kind = sorted.kind_of.at(node);
      if (needed[kind] || gone.contains(node)) continue;
      needed[kind] = !assignment.Settle(pool, kind);
      if (needed[kind]) continue;
      shares[pool].push_back(node);
      gone.insert(node);
    }
  }
  return shares;
}

}  // namespace tp::core
