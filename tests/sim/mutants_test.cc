// Each planted bug is caught within 2,000 seeds. Prints how many it took.
#include "mutants.h"

#include <gtest/gtest.h>

#include <cctype>

#include <fmt/core.h>

namespace tp::sim {
namespace {

constexpr uint64_t kMostSeeds = 2000;

class PlantedBug : public testing::TestWithParam<Mutant> {};

TEST_P(PlantedBug, IsCaught) {
  const Mutant& mutant = GetParam();
  core::Table table = core::ProductTable();
  if (mutant.change_table) mutant.change_table(table);
  SweepPlan plan;
  plan.last_seed = kMostSeeds;
  plan.simulator = mutant.simulator;
  plan.defects.table = &table;
  if (mutant.plant) mutant.plant(plan.defects);

  const SweepResult swept = Sweep(plan);
  fmt::print("SCENARIOS sim {}\n", swept.seeds);
  ASSERT_TRUE(swept.failed) << mutant.name << " is not seen in " << swept.seeds << " seeds";
  fmt::print("{}: caught by seed {}: {}\n", mutant.name, swept.failed->seed, swept.failed->broken);
}

std::string TestName(const testing::TestParamInfo<Mutant>& mutant) {
  std::string name;
  for (const char c : mutant.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(AllMutants()), TestName);

}  // namespace
}  // namespace tp::sim
