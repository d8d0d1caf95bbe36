#include "config/override_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/status.h"
#include "core/resource.h"

namespace tp::config {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

bool AllOf(std::string_view text, std::string_view punctuation) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           punctuation.find(c) != std::string_view::npos;
  });
}

std::string ShellWord(const std::string& word) {
  if (!word.empty() && AllOf(word, "_-./:=,@%+")) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A scalar without JSON's quotes.
std::string Plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

absl::Status CheckKey(const std::string& path, const std::string& key) {
  if (!key.empty() && key[0] != '-' && AllOf(key, "_-")) return absl::OkStatus();
  return InvalidArgument("key {} in {} cannot be an option's name: write [A-Za-z0-9_-], no - first", Quoted(key),
                         path.empty() ? "the overrides" : Quoted(path));
}

std::string Joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// Calls `leaf(path, value)` for each value that is not an object, with dotted paths.
template <typename Leaf>
absl::Status EachLeaf(const Json& object, const std::string& path, const Leaf& leaf) {
  for (const auto& [key, value] : object.items()) {
    TP_RETURN_IF_ERROR(CheckKey(path, key));
    const std::string here = Joined(path, key);
    if (value.is_object()) {
      TP_RETURN_IF_ERROR(EachLeaf(value, here, leaf));
    } else {
      TP_RETURN_IF_ERROR(leaf(here, value));
    }
  }
  return absl::OkStatus();
}

bool IsScalar(const Json& value) { return !value.is_object() && !value.is_array(); }

absl::Status AddArgparse(const std::string& path, const Json& value, Words& words) {
  if (value.is_boolean()) {
    words.push_back((value.get<bool>() ? "--" : "--no-") + path);
  } else if (value.is_array()) {
    if (!std::all_of(value.begin(), value.end(), IsScalar)) {
      return InvalidArgument("'{}' is a list of lists or mappings, which the style argparse cannot say", path);
    }
    words.push_back("--" + path);
    for (const Json& item : value) words.push_back(Plain(item));
  } else if (!value.is_null()) {
    words.push_back(fmt::format("--{}={}", path, Plain(value)));
  }
  return absl::OkStatus();
}

bool IsBareHydraText(const std::string& text) {
  if (text.empty() || !AllOf(text, "_-./:%+@")) return false;
  if (!AllOf(text.substr(0, 1), "_/") || (text[0] >= '0' && text[0] <= '9')) return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower != "true" && lower != "false" && lower != "null" && lower != "nan" && lower != "inf";
}

// In quotes where Hydra would read a number, a boolean or punctuation. Inside them a quote is escaped,
// and of backslashes only those right before a quote.
std::string HydraText(const std::string& text) {
  if (IsBareHydraText(text)) return text;
  std::string out = "'";
  size_t backslashes = 0;
  for (const char c : text) {
    if (c == '\'') out.append(backslashes + 1, '\\');
    backslashes = c == '\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, '\\') + "'";
}

std::string HydraValue(const Json& value) {
  Words items;
  if (value.is_string()) return HydraText(value.get<std::string>());
  if (value.is_array()) {
    for (const Json& item : value) items.push_back(HydraValue(item));
    return fmt::format("[{}]", fmt::join(items, ","));
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      items.push_back(fmt::format("{}:{}", HydraText(key), HydraValue(item)));
    return fmt::format("{{{}}}", fmt::join(items, ","));
  }
  return value.dump();
}

absl::Status AddVariable(const std::string& name, const Json& value, Words& words) {
  if (!IsScalar(value)) return InvalidArgument("'{}' is not a scalar, which the style env needs", name);
  if (value.is_null()) return absl::OkStatus();
  if (const absl::Status status = core::CheckVariable(name, Plain(value)); !status.ok()) return status;
  words.push_back(fmt::format("{}={}", name, Plain(value)));
  return absl::OkStatus();
}

absl::StatusOr<Words> WordsOf(core::OverrideStyle style, const Json& overrides) {
  Words words;
  switch (style) {
    case core::OverrideStyle::kArgparse:
      TP_RETURN_IF_ERROR(EachLeaf(
          overrides, "", [&](const std::string& path, const Json& value) { return AddArgparse(path, value, words); }));
      break;
    case core::OverrideStyle::kHydra:
      TP_RETURN_IF_ERROR(EachLeaf(overrides, "", [&](const std::string& path, const Json& value) {
        words.push_back(fmt::format("{}={}", path, HydraValue(value)));
        return absl::OkStatus();
      }));
      break;
    case core::OverrideStyle::kEnv:
      for (const auto& [name, value] : overrides.items()) TP_RETURN_IF_ERROR(AddVariable(name, value, words));
      break;
  }
  return words;
}

}  // namespace

absl::StatusOr<std::string> OverrideText(core::OverrideStyle style, const Json& overrides) {
  TP_ASSIGN_OR_RETURN(Words words, WordsOf(style, overrides));
  for (std::string& word : words) word = ShellWord(word);
  std::string text = fmt::format("{}", fmt::join(words, " "));
  if (text.size() >= core::kMaxVariableBytes / 2) return InvalidArgument("they come to {} bytes as text", text.size());
  return text;
}

}  // namespace tp::config
