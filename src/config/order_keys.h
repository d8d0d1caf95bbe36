// The keys of `scheduling` that say who starts next. tpd.yaml and the scenarios of `tpd simulate` share them.
#pragma once

#include <vector>

#include "core/step.h"
#include "decode/type.h"

namespace tp::config {

std::vector<decode::Field<core::Policy>> OrderKeys();

}  // namespace tp::config
