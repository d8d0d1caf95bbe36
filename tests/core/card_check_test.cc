#include "core/card_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Registry OneOfEach() {
  Registry registry;
  Series h200;
  h200.name = "h200";
  h200.gpus_per_node = 8;
  h200.nodes = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}};
  Series half = h200;
  half.name = "half";
  half.gpus_per_node = 4;
  Series cpu;
  cpu.name = "cpu";
  cpu.nodes = {{"c1", "10.0.0.9"}};
  registry.series = {{"h200", h200}, {"half", half}, {"cpu", cpu}};
  return registry;
}

Attempt On(const std::string& key, const std::string& node, std::vector<int> cards) {
  Attempt attempt;
  attempt.key = key;
  PoolPlacement pool;
  pool.gpus_per_node = static_cast<int>(cards.size());
  pool.ranks = {{node, "10.0.0.1", std::move(cards)}};
  attempt.placement.push_back(pool);
  return attempt;
}

std::vector<std::string> FaultsOf(const std::vector<Attempt>& attempts) {
  CardCheck check(OneOfEach());
  for (const Attempt& attempt : attempts) check.Add(attempt);
  return check.faults();
}

TEST(CardCheck, NothingIsWrongWithWhatFits) {
  EXPECT_THAT(FaultsOf({}), IsEmpty());
  EXPECT_THAT(FaultsOf({On("a", "n1", {0, 1, 2, 3}), On("b", "n1", {4, 7}), On("c", "n2", {0}), On("d", "c1", {})}),
              IsEmpty());
  EXPECT_THAT(FaultsOf({On("a", "", {}), On("b", "", {})}), IsEmpty()) << "the engine chooses";
}

TEST(CardCheck, NamesCardsThatTwoHold) {
  EXPECT_THAT(FaultsOf({On("a", "n1", {0, 1, 2}), On("b", "n1", {1, 2, 3}), On("c", "n1", {3})}),
              ElementsAre("a and b both hold cards 1, 2 of node n1: tp stop one of the runs",
                          "b and c both hold card 3 of node n1: tp stop one of the runs"));
}

TEST(CardCheck, SaysTheSameInAnyOrder) {
  EXPECT_EQ(FaultsOf({On("a", "n1", {0}), On("b", "n1", {0})}), FaultsOf({On("b", "n1", {0}), On("a", "n1", {0})}));
  EXPECT_EQ(FaultsOf({On("a", "c1", {}), On("b", "c1", {})}), FaultsOf({On("b", "c1", {}), On("a", "c1", {})}));
}

TEST(CardCheck, NamesAPlaceThatTwoHold) {
  EXPECT_THAT(FaultsOf({On("a", "c1", {}), On("b", "c1", {})}),
              ElementsAre("a and b both hold node c1, which is one place: tp stop one of the runs"));
}

TEST(CardCheck, NamesNodesThatAreGoneFromTheRegistryOnce) {
  Attempt attempt = On("a", "n9", {0});
  attempt.placement.push_back(attempt.placement[0]);
  EXPECT_THAT(FaultsOf({attempt}),
              ElementsAre("a runs on node n9, which is not in the registry: add it again, or tp stop the run"));
}

TEST(CardCheck, NamesCardsThatANodeDoesNotHave) {
  EXPECT_THAT(FaultsOf({On("a", "n1", {7, 8, 200, -1}), On("b", "c1", {0})}),
              ElementsAre("a holds cards 8, 200, -1 of node n1, which has 8 in the registry: correct gpus_per_node, or "
                          "tp stop the run",
                          "b holds card 0 of node c1, which has 0 in the registry: correct gpus_per_node, or tp stop "
                          "the run"));
}

}  // namespace
}  // namespace tp::core
