// This program's version, and what differs at the server's end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/context.h"

namespace tp::cli {

std::string_view ClientVersion();

// A sentence where the two may not understand one another: major or minor differ. Pure.
std::optional<std::string> VersionSkew(std::string_view client, std::string_view server);

// Asks the server, and says it if so. The error of a server that does not even answer that.
absl::Status WarnOfVersionSkew(const Context& context, Client& client);

}  // namespace tp::cli
