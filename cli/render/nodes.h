// Nodes as people read them. Everything that others wrote is escaped here. Pure.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "cli/terminal.h"
#include "tp/v1/node.pb.h"

namespace tp::cli {

// A line each: `tp admin nodes`.
std::string NodeTable(const v1::ListNodesResponse& response, const Terminal& terminal, absl::Time now, bool wide);

// Everything about one: `tp admin nodes NODE`.
std::string NodePage(const v1::Node& node, const Terminal& terminal, absl::Time now);

}  // namespace tp::cli
