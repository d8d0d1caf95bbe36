// A strict reader of a small YAML: one document of mappings, lists and scalars, each with its position.
// Refused: duplicate keys, anchors, aliases, tags, keys that are not scalars, bytes that are not UTF-8,
// quotes that are never closed, anything too large or too deep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/problem.h"

namespace tp::decode {

inline constexpr size_t kMaxFileBytes = size_t{1} << 20;

struct YamlKey {
  std::string text;
  Position at;
};

struct YamlEntry;

struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  Position at;
  std::string text;                // kScalar
  bool quoted = false;             // kScalar: in quotes or a block, so it is text whatever it looks like
  std::vector<YamlValue> items;    // kList
  std::vector<YamlEntry> entries;  // kMap, in the order of the file
};

struct YamlEntry {
  YamlKey key;
  YamlValue value;
};

// What sentences call it: `a mapping`, `the text 'x'`, `the number 4`.
std::string Describe(const YamlValue& value);

// An empty file is an empty mapping. Nothing after a problem that leaves no tree.
std::optional<YamlValue> ParseYaml(std::string_view text, Problems& problems);

}  // namespace tp::decode
