#include "core/placement.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

Registry TwoSeries() {
  Registry registry;
  Series h200;
  h200.name = "h200";
  h200.gpus_per_node = 8;
  h200.nodes = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}};
  Series shared = h200;
  shared.name = "shared";
  shared.nodes = {{"n2", "10.0.0.2"}, {"n3", "10.0.0.3"}};
  Series cpu;
  cpu.name = "cpu";
  cpu.nodes = {{"c1", "10.0.0.9"}};
  registry.series = {{"h200", h200}, {"shared", shared}, {"cpu", cpu}};
  return registry;
}

ResolvedShape Shape(std::vector<std::tuple<std::string, int64_t, int>> pools) {
  ResolvedShape shape;
  for (const auto& [series, nodes, gpus] : pools) {
    PoolShape pool;
    pool.series = series;
    pool.nodes = nodes;
    pool.gpus_per_node = gpus;
    shape.pools.push_back(pool);
  }
  return shape;
}

TEST(Capacity, LowestNodeAndCardFirst) {
  Capacity capacity(TwoSeries());
  const auto first = capacity.Place(Shape({{"h200", 1, 2}}), "");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at(0).ranks.at(0).node, "n1");
  EXPECT_EQ(first->at(0).ranks.at(0).cards, (std::vector<int>{0, 1}));
  capacity.Take(*first);
  const auto second = capacity.Place(Shape({{"h200", 1, 2}}), "");
  EXPECT_EQ(second->at(0).ranks.at(0).cards, (std::vector<int>{2, 3}));
  EXPECT_NE(second->at(0).master_port, first->at(0).master_port);
}

TEST(Capacity, AllPoolsOrNone) {
  Capacity capacity(TwoSeries());
  // n2 belongs to both series; a node serves one rank of a shape.
  EXPECT_TRUE(capacity.Place(Shape({{"h200", 1, 8}, {"shared", 2, 8}}), ""));
  EXPECT_FALSE(capacity.Place(Shape({{"h200", 2, 8}, {"shared", 2, 8}}), ""));
}

TEST(Capacity, APoolLeavesTheNextOneWhatOnlyThatCanUse) {
  Registry registry = TwoSeries();
  registry.series["shared"].nodes = {{"n1", "10.0.0.1"}};
  Capacity capacity(registry);
  const ResolvedShape shape = Shape({{"h200", 1, 8}, {"shared", 1, 8}});
  EXPECT_TRUE(capacity.HasRoom(shape, {}));
  const auto placed = capacity.Place(shape, "");
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->at(0).ranks.at(0).node, "n2");
  EXPECT_EQ(placed->at(1).ranks.at(0).node, "n1");
  // To go round n2 is not possible, and no reason to go without.
  EXPECT_EQ(capacity.Place(shape, "n2")->at(0).ranks.at(0).node, "n2");
}

TEST(Capacity, AnAvoidedNodeIsLeftToNoPoolWhereThereIsAWayWithoutIt) {
  Registry registry = TwoSeries();
  registry.series["h200"].nodes = {{"n1", "10.0.0.1"}, {"n3", "10.0.0.3"}};
  registry.series["shared"].nodes = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}};
  Capacity capacity(registry);
  const auto placed = capacity.Place(Shape({{"h200", 1, 8}, {"shared", 1, 8}}), "n2");
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->at(0).ranks.at(0).node, "n3");
  EXPECT_EQ(placed->at(1).ranks.at(0).node, "n1");
}

TEST(Capacity, WhatIsWithheldIsNotGivenAndStaysWithItsHolder) {
  Capacity capacity(TwoSeries());
  const auto held = capacity.Place(Shape({{"h200", 1, 8}}), "");
  capacity.Take(*held);  // n1
  capacity.Withhold({{"n1", {.cards = 0, .node = true, .why = {"n1 is drained"}}},
                     {"n2", {.cards = 0b11, .node = false, .why = {"two cards of n2 are elsewhere"}}},
                     {"c1", {.cards = 0, .node = true, .why = {}}}});
  EXPECT_EQ(capacity.FreeCards("h200"), 6);
  EXPECT_EQ(capacity.FreeCards("cpu"), 0);
  EXPECT_EQ(capacity.Place(Shape({{"h200", 1, 2}}), "")->at(0).ranks.at(0).cards, (std::vector<int>{2, 3}));
  EXPECT_FALSE(capacity.Place(Shape({{"h200", 1, 8}}), ""));
  EXPECT_TRUE(capacity.CouldEverFit(Shape({{"h200", 2, 8}}))) << "it comes back one day";
  EXPECT_EQ(capacity.WhyWithheld("h200"), (std::vector<std::string>{"n1 is drained", "two cards of n2 are elsewhere"}));
  // What a drained node held is not free once it is released, nor for those who wait for that.
  const CardSet freed = capacity.CardsOf(*held);
  EXPECT_FALSE(capacity.HasRoom(Shape({{"h200", 1, 8}}), {.freed = &freed}));
  capacity.Release(*held);
  EXPECT_EQ(capacity.FreeCards("h200"), 6);
  capacity.Reload(TwoSeries());
  EXPECT_EQ(capacity.FreeCards("h200"), 6);
  capacity.Withhold({});
  EXPECT_EQ(capacity.FreeCards("h200"), 16);
}

TEST(Capacity, ACardOfTwoSeriesIsCountedOnce) {
  Capacity capacity(TwoSeries());
  const auto both = capacity.Place(Shape({{"h200", 2, 8}}), "");
  capacity.Take(*both);
  EXPECT_EQ(capacity.FreeCards("h200"), 0);
  EXPECT_EQ(capacity.FreeCards("shared"), 8);
  EXPECT_FALSE(capacity.Place(Shape({{"shared", 2, 8}}), ""));
  capacity.Release(*both);
  EXPECT_EQ(capacity.FreeCards("shared"), 16);
}

TEST(Capacity, AvoidsTheBadNodeWhereAnotherFits) {
  Capacity capacity(TwoSeries());
  EXPECT_EQ(capacity.Place(Shape({{"h200", 1, 8}}), "n1")->at(0).ranks.at(0).node, "n2");
  EXPECT_TRUE(capacity.Place(Shape({{"h200", 2, 8}}), "n1"));
}

TEST(Capacity, ACpuNodeIsOnePlace) {
  Capacity capacity(TwoSeries());
  const auto one = capacity.Place(Shape({{"cpu", 1, 0}}), "");
  capacity.Take(*one);
  EXPECT_FALSE(capacity.Place(Shape({{"cpu", 1, 0}}), ""));
  EXPECT_EQ(capacity.FreeCards("cpu"), 0);
  capacity.Release(*one);
  EXPECT_TRUE(capacity.Place(Shape({{"cpu", 1, 0}}), ""));
}

TEST(Capacity, ReloadKeepsWhatIsHeld) {
  Capacity capacity(TwoSeries());
  const auto all = capacity.Place(Shape({{"h200", 2, 8}}), "");
  capacity.Take(*all);
  Registry smaller = TwoSeries();
  smaller.series["h200"].nodes.pop_back();
  capacity.Reload(smaller);
  EXPECT_EQ(capacity.TotalCards("h200"), 8);
  EXPECT_EQ(capacity.FreeCards("h200"), 0);
  EXPECT_FALSE(capacity.CouldEverFit(Shape({{"h200", 2, 8}})));
  capacity.Release(*all);
  EXPECT_EQ(capacity.FreeCards("h200"), 8);
}

// Two that hold one card, which only damage brings about, each keep it.
TEST(Capacity, ACardOfTwoIsFreeOnceBothHaveReleasedIt) {
  Capacity capacity(TwoSeries());
  const auto one = capacity.Place(Shape({{"h200", 1, 8}}), "");
  const auto place = capacity.Place(Shape({{"cpu", 1, 0}}), "");
  std::vector<PoolPlacement> other = *one;
  other[0].ranks[0].cards = {7, 8, 200, -1};
  for (const auto& placement : {*one, other, *place, *place}) capacity.Take(placement);
  EXPECT_EQ(capacity.FreeCards("h200"), 8);
  capacity.Reload(TwoSeries());
  capacity.Release(*one);
  capacity.Release(*place);
  EXPECT_EQ(capacity.FreeCards("h200"), 15);
  EXPECT_EQ(capacity.FreeCards("cpu"), 0);
  capacity.Release(other);
  capacity.Release(*place);
  EXPECT_EQ(capacity.FreeCards("h200"), 16);
  EXPECT_EQ(capacity.FreeCards("cpu"), 1);
}

}  // namespace
}  // namespace tp::core
