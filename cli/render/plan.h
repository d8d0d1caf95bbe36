// What a dry run says of the launch: executors, environment with origins, overrides, places. Pure.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// `series`, `--env`, ...
std::string OriginName(v1::VariableOrigin origin);

// A paragraph a step; empty where a server does not tell.
std::string LaunchPlan(const google::protobuf::RepeatedPtrField<v1::StepPlan>& plans, const Terminal& terminal);

}  // namespace tp::cli
