#include "decode/json_type.h"

#include <cmath>
#include <cstdlib>

#include "decode/scalar.h"

namespace tp::decode {
namespace {

using Json = nlohmann::json;

bool DecodeScalar(const YamlValue& value, Problems& problems, Json& out) {
  switch (ScalarKindOf(value)) {
    case ScalarKind::kText:
      out = value.text;
      return true;
    case ScalarKind::kBoolean:
      out = value.text == "true";
      return true;
    case ScalarKind::kInteger:
      if (const auto number = ParseInteger(value.text)) {
        out = *number;
        return true;
      }
      problems.Add(value.at, fmt::format("the number {} is too large for 64 bits; put it in quotes", value.text));
      return false;
    case ScalarKind::kFloat:
      if (const double number = std::strtod(value.text.c_str(), nullptr); std::isfinite(number)) {
        out = number;
        return true;
      }
      problems.Add(value.at, fmt::format("the number {} is too large; put it in quotes", value.text));
      return false;
    case ScalarKind::kAmbiguous:
      problems.Add(value.at, fmt::format("{} means different things to different readers; write true, false or a plain "
                                         "decimal number, or put it in quotes",
                                         Quoted(value.text)));
      return false;
  }
  return false;
}

bool DecodeAny(const YamlValue& value, Problems& problems, Json& out) {
  switch (value.kind) {
    case YamlValue::Kind::kNull:
      out = nullptr;
      return true;
    case YamlValue::Kind::kScalar:
      return DecodeScalar(value, problems, out);
    case YamlValue::Kind::kList: {
      bool good = true;
      out = Json::array();
      for (const YamlValue& item : value.items) good = DecodeAny(item, problems, out.emplace_back()) && good;
      return good;
    }
    case YamlValue::Kind::kMap: {
      bool good = true;
      out = Json::object();
      for (const auto& [key, item] : value.entries) good = DecodeAny(item, problems, out[key.text]) && good;
      return good;
    }
  }
  return false;
}

bool DecodeTextMap(const YamlValue& value, Problems& problems, Json& out) {
  const Type<std::string> text = Text("text");
  bool good = true;
  out = Json::object();
  for (const auto& [key, item] : value.entries) {
    std::string decoded;
    good = text.decode(item, problems, decoded) && good;
    out[key.text] = std::move(decoded);
  }
  return good;
}

}  // namespace

Type<Json> JsonAny() {
  Type<Json> type;
  type.words = "anything";
  type.decode = DecodeAny;
  return type;
}

Type<Json> JsonObject(std::string words) {
  Type<Json> type;
  type.words = std::move(words);
  type.schema = {{"type", "object"}};
  type.decode = [](const YamlValue& value, Problems& problems, Json& out) {
    if (value.kind == YamlValue::Kind::kMap) return DecodeAny(value, problems, out);
    AddMismatch(value, "a mapping", problems);
    return false;
  };
  return type;
}

Type<Json> JsonTextMap(std::string words) {
  Type<Json> type;
  type.words = std::move(words);
  type.schema = {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  type.decode = [](const YamlValue& value, Problems& problems, Json& out) {
    if (value.kind == YamlValue::Kind::kMap) return DecodeTextMap(value, problems, out);
    AddMismatch(value, "a mapping", problems);
    return false;
  };
  return type;
}

Type<Json> JsonListOf(Type<Json> element, std::string words) {
  Type<Json> type;
  type.words = std::move(words);
  type.record = element.record;
  type.schema = {{"type", "array"}, {"items", element.schema}};
  type.decode = [element = std::move(element)](const YamlValue& value, Problems& problems, Json& out) {
    if (value.kind != YamlValue::Kind::kList) {
      AddMismatch(value, "a list", problems);
      return false;
    }
    bool good = true;
    out = Json::array();
    for (const YamlValue& item : value.items) good = element.decode(item, problems, out.emplace_back()) && good;
    return good;
  };
  return type;
}

JsonField JsonKey(std::string key, Type<Json> type, std::string sentence) {
  JsonField field;
  field.doc.key = std::move(key);
  field.doc.type = type.words;
  field.doc.sentence = std::move(sentence);
  field.doc.record = type.record;
  field.doc.schema = FieldSchema(type.schema, field.doc.sentence, "");
  field.type = std::move(type);
  return field;
}

Type<Json> JsonRecord(std::string name, std::vector<JsonField> fields) {
  auto doc = std::make_shared<RecordDoc>();
  doc->name = name;
  for (const JsonField& field : fields) doc->fields.push_back(field.doc);
  Type<Json> type;
  type.words = std::move(name);
  type.record = doc;
  type.schema = RecordSchema(*doc);
  type.decode = [doc, fields = std::move(fields)](const YamlValue& value, Problems& problems, Json& out) {
    bool good = CheckKeys(value, *doc, problems);
    out = Json::object();
    for (const auto& [key, item] : value.entries) {
      for (const JsonField& field : fields) {
        if (field.doc.key != key.text || item.kind == YamlValue::Kind::kNull) continue;
        good = field.type.decode(item, problems, out[key.text]) && good;
      }
    }
    return good;
  };
  return type;
}

Json DeepMerge(Json base, const Json& layer) {
  if (!base.is_object() || !layer.is_object()) return layer;
  for (const auto& [key, value] : layer.items()) {
    base[key] = base.contains(key) ? DeepMerge(std::move(base[key]), value) : value;
  }
  return base;
}

}  // namespace tp::decode
