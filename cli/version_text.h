// Versions as text. Pure.
#pragma once

#include <string_view>

namespace tp::cli {

// This program's.
std::string_view ClientVersion();

// Numbers are compared as numbers; what is no number counts as 0.
bool IsOlder(std::string_view version, std::string_view than);

// `0.1` of `0.1.9`.
std::string_view MajorMinor(std::string_view version);

}  // namespace tp::cli
