// Looks into what an engine says, which may be any JSON: of what is not there or is something else, the empty value.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tp::docker {

inline const nlohmann::json& At(const nlohmann::json& json, const char* key) {
  static const nlohmann::json none;
  if (!json.is_object()) return none;
  const auto found = json.find(key);
  return found == json.end() ? none : *found;
}

inline std::string TextAt(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = At(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace tp::docker
