// Names of the API's enumerations as people read them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tp::cli {

// `QUEUED` of RUN_STATE_QUEUED; `-` for unspecified and for values of a newer server.
inline std::string EnumWord(const std::string& name, std::string_view prefix) {
  const bool unknown = name.empty() || name == std::string(prefix) + "UNSPECIFIED";
  return unknown ? "-" : name.substr(prefix.size());
}

}  // namespace tp::cli
