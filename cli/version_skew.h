// What differs between this program's version and the server's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/context.h"
#include "cli/version_text.h"

namespace tp::cli {

// A sentence where the two may not understand one another: major or minor differ. Pure.
std::optional<std::string> VersionSkew(std::string_view client, std::string_view server);

// Asks the server, and says it if so. The error of a server that does not even answer that.
absl::StatusOr<v1::GetServerInfoResponse> WarnOfVersionSkew(const Context& context, Client& client);

}  // namespace tp::cli
