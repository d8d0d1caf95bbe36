#include "cli/render/json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <nlohmann/json.hpp>

#include "cli/render/time.h"

namespace tp::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kSchemaVersion = 1;

// RUN_STATE_QUEUED of enum RunState: QUEUED; the zero value, which says nothing: null.
Json EnumToJson(const EnumValueDescriptor* value) {
  if (value->number() == 0) return nullptr;
  const std::string zero = value->type()->value(0)->name();
  constexpr std::string_view kZeroSuffix = "UNSPECIFIED";
  const size_t prefix = zero.size() - std::min(zero.size(), kZeroSuffix.size());
  if (value->name().compare(0, prefix, zero, 0, prefix) == 0) return value->name().substr(prefix);
  return value->name();
}

Json DurationToJson(const google::protobuf::Duration& duration) {
  if (duration.nanos() == 0) return fmt::format("{}s", duration.seconds());
  return fmt::format("{}s", absl::ToDoubleSeconds(FromProto(duration)));
}

Json MessageValue(const Message& message) {
  if (const auto* timestamp = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return Rfc3339(FromProto(*timestamp));
  }
  if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    return DurationToJson(*duration);
  }
  return ToJson(message);
}

// `index` is -1 for a singular field.
template <typename Single, typename Repeated>
auto Get(const Message& message, const FieldDescriptor* field, int index, Single single, Repeated repeated) {
  const Reflection& reflection = *message.GetReflection();
  return index < 0 ? (reflection.*single)(message, field) : (reflection.*repeated)(message, field, index);
}

Json Value(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Get(message, field, index, &Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return Get(message, field, index, &Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Get(message, field, index, &Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Get(message, field, index, &Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Get(message, field, index, &Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Get(message, field, index, &Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Get(message, field, index, &Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_STRING:
      return Get(message, field, index, &Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(Get(message, field, index, &Reflection::GetEnum, &Reflection::GetRepeatedEnum));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageValue(index < 0 ? reflection.GetMessage(message, field)
                                    : reflection.GetRepeatedMessage(message, field, index));
  }
  return nullptr;
}

Json MapToJson(const Message& message, const FieldDescriptor* field) {
  const Descriptor* entry_type = field->message_type();
  std::map<std::string, Json> sorted;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
    const Json key = Value(entry, entry_type->map_key(), -1);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] = Value(entry, entry_type->map_value(), -1);
  }
  Json object = Json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

Json RepeatedToJson(const Message& message, const FieldDescriptor* field) {
  Json array = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
    array.push_back(Value(message, field, i));
  return array;
}

Json FieldToJson(const Message& message, const FieldDescriptor* field) {
  if (field->is_map()) return MapToJson(message, field);
  if (field->is_repeated()) return RepeatedToJson(message, field);
  if (field->has_presence() && !message.GetReflection()->HasField(message, field)) return nullptr;
  return Value(message, field, -1);
}

bool IsPlainYaml(std::string_view text) {
  static constexpr std::array<std::string_view, 11> kReserved = {"true", "false", "yes", "no",  "on", "off",
                                                                 "null", "y",     "n",   "nan", "inf"};
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0 || text.back() == ' ') return false;
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '_' || c == '-' || c == '.' || c == '/';
  };
  if (!std::all_of(text.begin(), text.end(), harmless)) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return std::find(kReserved.begin(), kReserved.end(), lower) == kReserved.end();
}

std::string Compact(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

std::string YamlScalar(const Json& value) {
  if (value.is_string() && IsPlainYaml(value.get_ref<const std::string&>())) return value.get<std::string>();
  return Compact(value);  // JSON's scalars, and empty containers, are YAML's
}

void AppendYaml(std::string& out, const Json& value, size_t indent);

// What follows `key:` or `-`.
void AppendYamlChild(std::string& out, const Json& value, size_t indent, bool in_list) {
  if (!value.is_structured() || value.empty()) {
    out += " " + YamlScalar(value) + "\n";
  } else if (in_list) {
    std::string nested;
    AppendYaml(nested, value, indent + 2);
    out += " " + nested.substr(indent + 2);
  } else {
    out += "\n";
    AppendYaml(out, value, indent + 2);
  }
}

void AppendYaml(std::string& out, const Json& value, size_t indent) {
  if (value.is_array()) {
    for (const Json& item : value) {
      out += std::string(indent, ' ') + "-";
      AppendYamlChild(out, item, indent, true);
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    out += std::string(indent, ' ') + YamlScalar(key) + ":";
    AppendYamlChild(out, item, indent, false);
  }
}

// `gpu_seconds` of gpu_ms, `month_gpu_seconds` of month_gpu_ms; empty for other names.
std::string SecondsName(const std::string& name) {
  constexpr std::string_view kMilliseconds = "gpu_ms";
  if (name.size() < kMilliseconds.size() || name.substr(name.size() - kMilliseconds.size()) != kMilliseconds) return "";
  return name.substr(0, name.size() - kMilliseconds.size()) + "gpu_seconds";
}

}  // namespace

Json ToJson(const Message& message) {
  const Descriptor* type = message.GetDescriptor();
  Json object = Json::object();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    object[field->name()] = FieldToJson(message, field);
    if (const std::string seconds = SecondsName(field->name()); !seconds.empty()) {
      object[seconds] = static_cast<double>(message.GetReflection()->GetInt64(message, field)) / 1000.0;
    }
  }
  return object;
}

Json NewDocument() { return {{"schema_version", kSchemaVersion}}; }

std::string DumpJson(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string DumpYaml(const Json& document) {
  std::string out;
  AppendYaml(out, document, 0);
  return out;
}

}  // namespace tp::cli
