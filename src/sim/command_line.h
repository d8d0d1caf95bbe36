// `sim`, and `tpd simulate`.
#pragma once

#include <string>
#include <vector>

namespace tp::sim {

// Arguments without the program's name. Returns the exit code: 0 all rules held, 1 one is broken, 2
// usage.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace tp::sim
