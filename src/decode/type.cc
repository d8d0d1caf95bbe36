#include "decode/type.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/duration.h"
#include "base/status.h"
#include "decode/scalar.h"

namespace tp::decode {
namespace {

// Text, where a bare word could be taken for something else by another reader.
bool NeedsQuotes(const YamlValue& value) {
  switch (ScalarKindOf(value)) {
    case ScalarKind::kText:
      return false;
    case ScalarKind::kBoolean:
    case ScalarKind::kInteger:
    case ScalarKind::kFloat:
    case ScalarKind::kAmbiguous:
      return true;
  }
  return true;
}

bool IsName(std::string_view text) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto rest = [&](char c) { return alphanumeric(c) || c == '.' || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= 63 && alphanumeric(text[0]) && std::all_of(text.begin(), text.end(), rest);
}

std::string RangeText(int64_t min, int64_t max) {
  return min == max ? fmt::format("{}", min) : fmt::format("a whole number from {} to {}", min, max);
}

bool DecodeInteger(const YamlValue& value, int64_t min, int64_t max, Problems& problems, int64_t& out) {
  const bool integer = value.kind == YamlValue::Kind::kScalar && ScalarKindOf(value) == ScalarKind::kInteger;
  const std::optional<int64_t> number = integer ? ParseInteger(value.text) : std::nullopt;
  if (!number || *number < min || *number > max) {
    AddMismatch(value, RangeText(min, max), problems);
    return false;
  }
  out = *number;
  return true;
}

struct ByteUnit {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<ByteUnit, 5> kByteUnits = {{{"TiB", int64_t{1} << 40},
                                                 {"GiB", int64_t{1} << 30},
                                                 {"MiB", int64_t{1} << 20},
                                                 {"KiB", int64_t{1} << 10},
                                                 {"B", 1}}};

std::string ByteSizeText(int64_t bytes) {
  for (const ByteUnit& unit : kByteUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) return fmt::format("{}{}", bytes / unit.bytes, unit.name);
  }
  return fmt::format("{}B", bytes);
}

std::optional<int64_t> ParseByteSize(std::string_view text, int64_t max) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> count = ParseInteger(text.substr(0, digits));
  if (digits == 0 || !count) return std::nullopt;
  for (const ByteUnit& unit : kByteUnits) {
    if (text.substr(digits) == unit.name && *count <= max / unit.bytes) return *count * unit.bytes;
  }
  return std::nullopt;
}

}  // namespace

void AddMismatch(const YamlValue& value, std::string_view expected, Problems& problems) {
  problems.Add(value.at, fmt::format("expected {}, found {}", expected, Describe(value)));
}

void AddUnknown(Position at, std::string_view what, std::string_view name, std::string_view where,
                const std::vector<std::string>& known, Problems& problems) {
  std::string hint = fmt::format("{} {}", known.size() == 1 ? "there is only" : "there are", fmt::join(known, ", "));
  if (known.empty()) hint = "there are none";
  if (const auto near = NearMiss(name, known)) hint = fmt::format("did you mean {}?", *near);
  const std::string in = where.empty() ? "" : fmt::format(" in {}", where);
  problems.Add(at, fmt::format("unknown {} {}{}; {}", what, Quoted(name), in, hint));
}

Type<std::string> Text(const std::string& words, TextCheck check, const std::string& pattern) {
  Type<std::string> type;
  type.words = words;
  type.schema = {{"type", "string"}};
  if (!pattern.empty()) type.schema["pattern"] = pattern;
  type.decode = [words, check = std::move(check)](const YamlValue& value, Problems& problems, std::string& out) {
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, words, problems);
      return false;
    }
    if (NeedsQuotes(value)) {
      problems.Add(value.at,
                   fmt::format("expected text, found {}; if it is meant as text, put it in quotes", Describe(value)));
      return false;
    }
    if (check) {
      if (const auto wrong = check(value.text)) {
        problems.Add(value.at, *wrong);
        return false;
      }
    }
    out = value.text;
    return true;
  };
  type.text = [](const std::string& value) { return value; };
  return type;
}

Type<std::string> Name(const std::string& words) {
  Type<std::string> type;
  type.words = words;
  type.schema = AnyScalarSchema();
  type.schema["pattern"] = "^[a-z0-9][a-z0-9._-]{0,62}$";
  type.decode = [words](const YamlValue& value, Problems& problems, std::string& out) {
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, words, problems);
      return false;
    }
    if (!IsName(value.text)) {
      problems.Add(value.at, fmt::format("{} is not a name: write up to 63 of [a-z0-9._-], a letter or digit first",
                                         Quoted(value.text)));
      return false;
    }
    out = value.text;
    return true;
  };
  type.text = [](const std::string& value) { return value; };
  return type;
}

Type<std::string> Scalar(const std::string& words) {
  Type<std::string> type;
  type.words = words;
  type.schema = AnyScalarSchema();
  type.decode = [words](const YamlValue& value, Problems& problems, std::string& out) {
    if (value.kind == YamlValue::Kind::kNull) {
      problems.Add(value.at, fmt::format("expected {}, found nothing; write \"\" for an empty one", words));
      return false;
    }
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, words, problems);
      return false;
    }
    out = value.text;
    return true;
  };
  return type;
}

Type<bool> Boolean() {
  Type<bool> type;
  type.words = "true or false";
  type.schema = {{"type", "boolean"}};
  type.decode = [](const YamlValue& value, Problems& problems, bool& out) {
    if (value.kind != YamlValue::Kind::kScalar || ScalarKindOf(value) != ScalarKind::kBoolean) {
      AddMismatch(value, "true or false", problems);
      return false;
    }
    out = value.text == "true";
    return true;
  };
  type.text = [](bool value) { return std::string(value ? "true" : "false"); };
  return type;
}

Type<int64_t> Integer(int64_t min, int64_t max) {
  Type<int64_t> type;
  type.words = RangeText(min, max);
  type.schema = {{"type", "integer"}, {"minimum", min}, {"maximum", max}};
  type.decode = [min, max](const YamlValue& value, Problems& problems, int64_t& out) {
    return DecodeInteger(value, min, max, problems, out);
  };
  type.text = [](int64_t value) { return fmt::format("{}", value); };
  return type;
}

Type<int> SmallInteger(int min, int max) {
  Type<int> type;
  type.words = RangeText(min, max);
  type.schema = {{"type", "integer"}, {"minimum", min}, {"maximum", max}};
  type.decode = [min, max](const YamlValue& value, Problems& problems, int& out) {
    int64_t number = 0;
    if (!DecodeInteger(value, min, max, problems, number)) return false;
    out = static_cast<int>(number);
    return true;
  };
  type.text = [](int value) { return fmt::format("{}", value); };
  return type;
}

Type<absl::Duration> DurationBetween(absl::Duration min, absl::Duration max) {
  Type<absl::Duration> type;
  type.words = fmt::format("duration, {} to {}", DurationText(min), DurationText(max));
  type.schema = {
      {"type", "string"}, {"minLength", 2}, {"pattern", "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"}};
  type.decode = [min, max](const YamlValue& value, Problems& problems, absl::Duration& out) {
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, "a duration such as 30s or 2h30m", problems);
      return false;
    }
    const absl::StatusOr<absl::Duration> duration = ParseDuration(value.text);
    if (!duration.ok()) {
      problems.Add(value.at, std::string(Message(duration.status())));
      return false;
    }
    if (*duration < min || *duration > max) {
      AddMismatch(value, fmt::format("a duration from {} to {}", DurationText(min), DurationText(max)), problems);
      return false;
    }
    out = *duration;
    return true;
  };
  type.text = [](absl::Duration value) { return DurationText(value); };
  return type;
}

Type<int64_t> ByteSize(int64_t min, int64_t max) {
  Type<int64_t> type;
  type.words = fmt::format("size, {} to {}", ByteSizeText(min), ByteSizeText(max));
  type.schema = {{"type", "string"}, {"pattern", "^[0-9]+(B|KiB|MiB|GiB|TiB)$"}};
  type.decode = [min, max](const YamlValue& value, Problems& problems, int64_t& out) {
    const bool scalar = value.kind == YamlValue::Kind::kScalar;
    const std::optional<int64_t> bytes = scalar ? ParseByteSize(value.text, max) : std::nullopt;
    if (!bytes || *bytes < min) {
      AddMismatch(value,
                  fmt::format("a size from {} to {} in B, KiB, MiB, GiB or TiB", ByteSizeText(min), ByteSizeText(max)),
                  problems);
      return false;
    }
    out = *bytes;
    return true;
  };
  type.text = [](int64_t value) { return ByteSizeText(value); };
  return type;
}

Type<YamlValue> Raw(std::string words, Schema schema) {
  Type<YamlValue> type;
  type.words = std::move(words);
  type.schema = std::move(schema);
  type.decode = [](const YamlValue& value, Problems&, YamlValue& out) {
    out = value;
    return true;
  };
  return type;
}

bool CheckKeys(const YamlValue& value, const RecordDoc& doc, Problems& problems) {
  if (value.kind != YamlValue::Kind::kMap) {
    AddMismatch(value, fmt::format("a mapping ({})", doc.name), problems);
    return false;
  }
  const size_t before = problems.count();
  std::vector<std::string> known;
  known.reserve(doc.fields.size());
  for (const FieldDoc& field : doc.fields) known.push_back(field.key);
  for (const auto& [key, item] : value.entries) {
    if (std::find(known.begin(), known.end(), key.text) == known.end()) {
      AddUnknown(key.at, "key", key.text, doc.name, known, problems);
    } else if (item.kind == YamlValue::Kind::kNull) {
      problems.Add(key.at, fmt::format("key '{}' has no value; give one or leave the key out", key.text));
    }
  }
  for (const FieldDoc& field : doc.fields) {
    const bool found = std::any_of(value.entries.begin(), value.entries.end(),
                                   [&](const auto& entry) { return entry.key.text == field.key; });
    if (field.required && !found) problems.Add(value.at, fmt::format("{} needs the key '{}'", doc.name, field.key));
  }
  return problems.count() == before;
}

Schema RecordSchema(const RecordDoc& doc) {
  Schema schema = {{"type", "object"}, {"properties", Schema::object()}};
  Schema required = Schema::array();
  for (const FieldDoc& field : doc.fields) {
    schema["properties"][field.key] = field.schema;
    if (field.required) required.push_back(field.key);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace tp::decode
