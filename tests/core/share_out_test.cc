// Nodes for several pools against an oracle that tries every arrangement.
#include "core/share_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/placement.h"

namespace tp::core {
namespace {

using Fitting = std::vector<std::vector<size_t>>;
using Shares = std::optional<Fitting>;

// The first arrangement by the pools' order and then by preference, found by trying them all in that order.
class Oracle {
 public:
  Oracle(const Fitting& fitting, const std::vector<int64_t>& wanted)
      : fitting_(fitting), wanted_(wanted), shares_(fitting.size()) {}

  Shares Find() { return Try(0, 0) ? Shares(shares_) : std::nullopt; }

 private:
  bool Try(size_t pool, size_t from) {
    if (pool == fitting_.size()) return true;
    if (static_cast<int64_t>(shares_[pool].size()) == wanted_[pool]) return Try(pool + 1, 0);
    for (size_t i = from; i < fitting_[pool].size(); ++i) {
      const size_t node = fitting_[pool][i];
      if (!used_.insert(node).second) continue;
      shares_[pool].push_back(node);
      if (Try(pool, i + 1)) return true;
      shares_[pool].pop_back();
      used_.erase(node);
    }
    return false;
  }

  const Fitting& fitting_;
  const std::vector<int64_t>& wanted_;
  Fitting shares_;
  std::set<size_t> used_;
};

// All subsets of four nodes for each of two pools, and for three pools of three nodes, with every demand.
void Exhaust(size_t nodes, size_t pools) {
  const size_t subsets = size_t{1} << nodes;
  size_t cases = 1;
  for (size_t i = 0; i < pools; ++i) cases *= subsets * (nodes + 1);
  size_t possible = 0;
  for (size_t number = 0; number < cases; ++number) {
    Fitting fitting(pools);
    std::vector<int64_t> wanted;
    size_t rest = number;
    for (size_t pool = 0; pool < pools; ++pool) {
      for (size_t node = 0; node < nodes; ++node) {
        if ((rest % subsets) >> node & 1) fitting[pool].push_back(node);
      }
      rest /= subsets;
      wanted.push_back(static_cast<int64_t>(rest % (nodes + 1)));
      rest /= nodes + 1;
    }
    const Shares expected = Oracle(fitting, wanted).Find();
    ASSERT_EQ(ShareOut(fitting, wanted), expected) << "case " << number;
    possible += expected.has_value() ? 1 : 0;
  }
  EXPECT_GT(possible, cases / 100);
}

TEST(ShareOut, IsTheFirstOfAllWaysOfTwoPools) { Exhaust(4, 2); }
TEST(ShareOut, IsTheFirstOfAllWaysOfThreePools) { Exhaust(3, 3); }

TEST(ShareOut, IsTheFirstOfAllWaysWhateverIsPreferred) {
  std::mt19937 random(7);
  const auto draw = [&](size_t below) { return random() % below; };
  size_t possible = 0;
  constexpr size_t kCases = 20'000;
  for (size_t number = 0; number < kCases; ++number) {
    Fitting fitting(2 + draw(3));
    std::vector<int64_t> wanted;
    for (std::vector<size_t>& nodes : fitting) {
      for (size_t node = 0; node < 7; ++node) {
        if (draw(2) == 0) nodes.push_back(node);
      }
      std::shuffle(nodes.begin(), nodes.end(), random);
      wanted.push_back(static_cast<int64_t>(draw(3)));
    }
    const Shares expected = Oracle(fitting, wanted).Find();
    ASSERT_EQ(ShareOut(fitting, wanted), expected) << "case " << number;
    possible += expected.has_value() ? 1 : 0;
  }
  EXPECT_GT(possible, kCases / 4);
}

}  // namespace
}  // namespace tp::core
