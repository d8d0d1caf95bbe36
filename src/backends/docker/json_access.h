// Looks into what an engine says, which may be any JSON: of what is not there or is something else, the empty value.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

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

inline std::optional<int> IntegerOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace tp::docker
