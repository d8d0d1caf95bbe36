// What the engines hold against the live attempts, as admins read it. Pure.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "tp/v1/system.pb.h"

namespace tp::cli {

std::string ReconcilePage(const v1::ReconcileResponse& response, const Terminal& terminal);

}  // namespace tp::cli
