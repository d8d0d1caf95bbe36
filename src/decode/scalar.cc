#include "decode/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "decode/yaml_tree.h"

namespace tp::decode {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes digits off the front; how many.
size_t TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto count = static_cast<size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

bool Take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

ScalarKind NumberKind(std::string_view text) {
  const bool plus = !text.empty() && text[0] == '+';
  Take(text, "+-");
  const bool leading_zero = text.size() > 1 && text[0] == '0' && IsDigit(text[1]);
  const size_t whole = TakeDigits(text);
  if (whole > 0 && text.empty()) return leading_zero || plus ? ScalarKind::kAmbiguous : ScalarKind::kInteger;
  size_t fraction = 0;
  if (Take(text, ".")) fraction = TakeDigits(text);
  if (whole + fraction == 0) return ScalarKind::kText;
  if (Take(text, "eE")) {
    Take(text, "+-");
    if (TakeDigits(text) == 0) return ScalarKind::kText;
  }
  return text.empty() ? ScalarKind::kFloat : ScalarKind::kText;
}

bool IsYaml11Word(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords = {"y", "n", "yes", "no", "on", "off", "true", "false"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

// Numbers of YAML that JSON and people read differently: 0x10, 0o17, .inf, .nan.
bool IsOtherNumber(std::string_view text) {
  const std::string_view prefix = text.substr(0, 2);
  if ((prefix == "0x" || prefix == "0o") && text.size() > 2) {
    return text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
  }
  Take(text, "+-");
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN";
}

}  // namespace

ScalarKind ScalarKindOf(const YamlValue& scalar) {
  if (scalar.quoted) return ScalarKind::kText;
  if (scalar.text == "true" || scalar.text == "false") return ScalarKind::kBoolean;
  if (IsYaml11Word(scalar.text) || IsOtherNumber(scalar.text)) return ScalarKind::kAmbiguous;
  return NumberKind(scalar.text);
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tp::decode
