// What happened to runs, as rows and as lines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client.h"
#include "cli/terminal.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

// All of a run, oldest first.
absl::StatusOr<std::vector<v1::Event>> ListEvents(Client& client, const std::string& run);

std::string EventTable(const std::vector<v1::Event>& events, bool wide, const Terminal& terminal, absl::Time now);

// For following: one line, with the time of day.
std::string EventLine(const v1::Event& event);

}  // namespace tp::cli
