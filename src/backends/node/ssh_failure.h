// Why ssh did not bring an answer, from what it wrote and how it ended. Pure.
#pragma once

#include <string_view>

#include "backends/node/remote_shell.h"

namespace tp::node {

// Of a call whose answer is not whole. `begun`: the program was started.
TransportFailure JudgeSsh(int exit_code, std::string_view err, bool begun);

// The call was given up at its deadline.
TransportFailure TimedOut(absl::Duration after);

}  // namespace tp::node
