// Pieces of JSON Schema (draft 2020-12), for editors: structure only, what a sentence has to explain is
// the decoder's. Pure.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tp::decode {

using Schema = nlohmann::ordered_json;

// Text that may be written without quotes whatever it looks like.
Schema AnyScalarSchema();

// An object with free keys. `key` is the schema of a scalar.
Schema MapSchema(const Schema& key, const Schema& element);

// A record's key: what its value is, and what holds without it (empty: nothing to say).
Schema FieldSchema(Schema value, const std::string& sentence, const std::string& fallback);

// A whole schema file.
std::string SchemaDocument(const Schema& root, std::string_view title);

}  // namespace tp::decode
