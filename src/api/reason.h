// Why a run or step is where it is, in words for `tp status`, `tp show` and the job page. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/gates.h"
#include "core/run.h"
#include "core/step.h"

namespace tp::api {

// Never empty for QUEUED, PENDING, PAUSED and FAILED. `gates`: those closed now, for a QUEUED step.
std::string StepReason(const core::Step& step, const std::vector<core::GateVerdict>& gates);

// The step that a run's word and reason speak of. `run` has at least one step.
const core::Step& SpeakingStep(const core::RunWithSteps& run);

}  // namespace tp::api
