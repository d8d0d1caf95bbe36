// What a change of rules would do at once, or has done: counts first, then a screenful. Pure.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "tp/v1/system.pb.h"

namespace tp::cli {

// `wide`: every effect that the server told.
std::string ForecastText(const v1::QueueForecast& forecast, bool wide, const Terminal& terminal);

}  // namespace tp::cli
