// What a configuration comes to, for admins.
#pragma once

#include <string>

#include "config/load.h"

namespace tp::config {

// A line each for series, profiles and executors.
std::string Summary(const Loaded& loaded);

}  // namespace tp::config
