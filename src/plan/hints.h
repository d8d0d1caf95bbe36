// What would let a waiting step start, by trying it: fewer cards, other cards, less time (DESIGN 6, `tp why`).
// Pure; each try is one look at all gates.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/run.h"
#include "core/step.h"
#include "plan/planner.h"

namespace tp::plan {

// At most a few sentences, the closest to what was asked first. None where the step's own gates are closed:
// nothing of this would open them.
std::vector<std::string> HintsFor(const Planner& planner, const core::RunWithSteps& run, const core::Step& step,
                                  absl::Time now);

}  // namespace tp::plan
