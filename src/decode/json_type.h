// JSON out of YAML: framework overrides, executor configuration. The same descriptions as type.h, with
// nlohmann::json as the value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "decode/type.h"

namespace tp::decode {

// Anything that JSON can say. Words that YAML readers disagree on need quotes.
Type<nlohmann::json> JsonAny();
// Any mapping.
Type<nlohmann::json> JsonObject(std::string words);
Type<nlohmann::json> JsonTextMap(std::string words);  // every value is text
Type<nlohmann::json> JsonListOf(Type<nlohmann::json> element, std::string words);

// A Type<T> whose value is stored as JSON.
template <typename T>
Type<nlohmann::json> AsJson(const Type<T>& inner) {
  Type<nlohmann::json> type;
  type.words = inner.words;
  type.record = inner.record;
  type.schema = inner.schema;
  type.decode = [inner](const YamlValue& value, Problems& problems, nlohmann::json& out) {
    T decoded{};
    if (!inner.decode(value, problems, decoded)) return false;
    out = decoded;
    return true;
  };
  return type;
}

struct JsonField {
  FieldDoc doc;
  Type<nlohmann::json> type;
};
JsonField JsonKey(std::string key, Type<nlohmann::json> type, std::string sentence);

// An object of known keys; only those that are given are in the result.
Type<nlohmann::json> JsonRecord(std::string name, std::vector<JsonField> fields);

// `layer` over `base`: objects merge deep, everything else is replaced.
nlohmann::json DeepMerge(nlohmann::json base, const nlohmann::json& layer);

}  // namespace tp::decode
