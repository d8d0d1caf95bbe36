// Variables of tp's own environment.
#pragma once

#include <cstdlib>
#include <string>

namespace tp::cli {

// Empty where it is not set.
inline std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace tp::cli
