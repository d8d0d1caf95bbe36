// The names that a map has, for sentences that list or guess them. Pure.
#pragma once

#include <string>
#include <vector>

namespace tp::config {

template <typename Map>
std::vector<std::string> KeysOf(const Map& map) {
  std::vector<std::string> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace tp::config
