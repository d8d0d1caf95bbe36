// Why a run or step is where it is, in words for `tp status`, `tp show`, the job page and notifications. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/gates.h"
#include "core/run.h"
#include "core/step.h"

namespace tp::core {

// Never empty for QUEUED, PENDING, PAUSED and FAILED. `gates`: those closed now, for a QUEUED step.
std::string StepReason(const Step& step, const std::vector<GateVerdict>& gates);

// The step that a run's word and reason speak of. `steps`: all of the run, by index; at least one.
const Step& SpeakingStep(const std::vector<Step>& steps);

}  // namespace tp::core
