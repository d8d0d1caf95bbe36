// Windows as people read them. Everything that others wrote is escaped here. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/window.pb.h"

namespace tp::cli {

// `h200: open, closes Tue 1 Dec 07:00 Europe/Berlin (in 3h)`, one for each set of hours. Not escaped.
std::vector<std::string> WindowSentences(const v1::SeriesWindows& windows, absl::Time now);

// One screen: `tp windows`.
std::string WindowPage(const v1::ListWindowsResponse& response, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
