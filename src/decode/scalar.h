// What a YAML scalar is: a subset of YAML 1.2's core schema without its surprises. Integers and floats
// in decimal, `true` and `false`. What another YAML reader takes for something else is `kAmbiguous`:
// yes and no, 010, +1, 0x10, .inf.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tp::decode {

struct YamlValue;

enum class ScalarKind { kText, kBoolean, kInteger, kFloat, kAmbiguous };

ScalarKind ScalarKindOf(const YamlValue& scalar);

// Nothing for what is no integer or does not fit.
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace tp::decode
