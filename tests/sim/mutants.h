// Bugs planted around the product, one at a time, to prove that the simulator sees them. The product's
// code stays as it is: rows of a copied table are replaced, a policy is bent, or a seam is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/table.h"
#include "sim/defects.h"
#include "sim/sweep.h"

namespace tp::sim {

struct Mutant {
  std::string name;
  std::function<void(core::Table&)> change_table = nullptr;
  std::function<void(Defects&)> plant = nullptr;
  Simulator simulator = Simulator::kLoop;
};

std::vector<Mutant> AllMutants();

}  // namespace tp::sim
