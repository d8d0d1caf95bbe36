#include "decode/schema.h"

namespace tp::decode {
namespace {

bool HasType(const Schema& schema, const char* type) {
  const auto found = schema.find("type");
  return found != schema.end() && *found == type;
}

// What a key can be held to: in JSON it is a string, whatever it stands for.
Schema KeySchema(Schema key) {
  if (HasType(key, "integer")) return {{"pattern", "^[0-9]+$"}};
  key.erase("type");
  return key;
}

}  // namespace

Schema AnyScalarSchema() { return {{"type", {"string", "number", "boolean"}}}; }

Schema MapSchema(const Schema& key, const Schema& element) {
  Schema schema = {{"type", "object"}};
  if (Schema names = KeySchema(key); !names.empty()) schema["propertyNames"] = std::move(names);
  schema["additionalProperties"] = element;
  return schema;
}

Schema FieldSchema(Schema value, const std::string& sentence, const std::string& fallback) {
  value["description"] = sentence;
  if (fallback.empty()) return value;
  const bool is_json = HasType(value, "integer") || HasType(value, "boolean");
  value["default"] = is_json ? Schema::parse(fallback) : Schema(fallback);
  return value;
}

std::string SchemaDocument(const Schema& root, std::string_view title) {
  Schema document = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", std::string(title)}};
  document.update(root);
  return document.dump(2) + "\n";
}

}  // namespace tp::decode
