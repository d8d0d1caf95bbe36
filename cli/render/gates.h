// What holds a step, as people read it. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// `CAPACITY`
std::string GateName(v1::Gate gate);

// A gate a line, with since when it is closed and when it opens.
std::string GateLines(const google::protobuf::RepeatedPtrField<v1::GateVerdict>& gates, const Terminal& terminal,
                      absl::Time now, int indent);

}  // namespace tp::cli
