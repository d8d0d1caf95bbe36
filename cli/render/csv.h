// RFC 4180. Pure.
#pragma once

#include <string>
#include <vector>

namespace tp::cli {

// Quoted where needed; ends in CRLF.
std::string CsvLine(const std::vector<std::string>& fields);

}  // namespace tp::cli
