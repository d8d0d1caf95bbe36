// tpd's log on standard error. Writers never wait for whoever reads it: when it stalls, the oldest
// lines are dropped.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace tp::tpd {

enum class LogFormat { kText, kJson };

void StartLogging(LogFormat format, const std::string& level);

// Writes what is waiting. Called before the process ends.
void StopLogging();

// INVALID_ARGUMENT unless it is one of trace, debug, info, warning, error.
absl::Status CheckLogLevel(const std::string& level);

}  // namespace tp::tpd
