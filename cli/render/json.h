// The machine formats. An API message becomes an object of its own field names, every field present:
// enums without their prefix, 64-bit integers as numbers, timestamps RFC 3339 UTC, durations `7200s`,
// what is absent null; beside `gpu_ms` stands `gpu_seconds`. Keys keep the order of the API. Pure.
#pragma once

#include <string>

#include <google/protobuf/message.h>
#include <nlohmann/json_fwd.hpp>

namespace tp::cli {

using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message);

// `{"schema_version": 1}`, the start of every document.
Json NewDocument();

// ASCII only, two spaces deep, ends in a newline.
std::string DumpJson(const Json& document);

// The same document in YAML; strings that could be read as anything else are quoted.
std::string DumpYaml(const Json& document);

}  // namespace tp::cli
