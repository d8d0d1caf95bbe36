#include "store/codec.h"

#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "base/utf8.h"
#include "store/fields.h"
#include "store/micros.h"
#include "store/words.h"

namespace tp::store {
namespace {

using Json = nlohmann::json;

// --- Encoding -------------------------------------------------------------------------------------

class Encoder {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    object_[name] = ToJson(value);
  }

  template <typename T>
  static Json ToJson(const T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return std::string(Word(value));
    } else if constexpr (std::is_same_v<T, absl::Time> || std::is_same_v<T, absl::Duration>) {
      return ToMicros(value);
    } else {
      Encoder encoder;
      Fields(encoder, value);
      return std::move(encoder.object_);
    }
  }

  static Json ToJson(const std::string& value) {
    if (!FirstInvalidUtf8(value)) return value;
    return {{"base64", absl::Base64Escape(value)}};
  }

  template <typename T>
  static Json ToJson(const std::optional<T>& value) {
    return value ? ToJson(*value) : Json();
  }

  template <typename T>
  static Json ToJson(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(ToJson(value));
    return array;
  }

  template <typename T>
  static Json ToJson(const std::map<std::string, T>& values) {
    Json array = Json::array();
    for (const auto& [key, value] : values) array.push_back(Json::array({ToJson(key), ToJson(value)}));
    return array;
  }

 private:
  Json object_ = Json::object();
};

// --- Decoding -------------------------------------------------------------------------------------

// Where a value stands in its document; a chain on the stack, spelled out only for a fault.
struct Place {
  const Place* parent = nullptr;
  const char* name = "";
  size_t index = 0;  // used where name is null

  std::string Text() const {
    const std::string before = parent == nullptr ? std::string() : parent->Text();
    if (name == nullptr) return fmt::format("{}[{}]", before, index);
    return before.empty() ? name : before + "." + name;
  }
};

// Reads one object's members; the first fault ends it.
class Decoder {
 public:
  Decoder(const Json& object, const Place& place, std::string& fault) : object_(object), place_(place), fault_(fault) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    if (!fault_.empty()) return;
    const Place place{&place_, name};
    const auto found = object_.find(name);
    if (Require(found != object_.end(), place, "is missing")) Read(*found, place, value);
  }

  template <typename T>
  void Read(const Json& json, const Place& place, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (Require(json.is_boolean(), place, "is not true or false")) value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      ReadInteger(json, place, value);
    } else if constexpr (std::is_enum_v<T>) {
      ReadWord(json, place, value);
    } else if constexpr (std::is_same_v<T, absl::Time>) {
      int64_t unix_us = 0;
      ReadInteger(json, place, unix_us);
      value = TimeOf(unix_us);
    } else if constexpr (std::is_same_v<T, absl::Duration>) {
      int64_t us = 0;
      ReadInteger(json, place, us);
      value = DurationOf(us);
    } else {
      if (!Require(json.is_object(), place, "is not an object")) return;
      Decoder members(json, place, fault_);
      Fields(members, value);
    }
  }

  void Read(const Json& json, const Place& place, std::string& value) {
    if (json.is_string()) {
      value = json.get<std::string>();
      return;
    }
    const bool encoded = json.is_object() && json.contains("base64") && json["base64"].is_string();
    if (!Require(encoded, place, "is not text")) return;
    Require(absl::Base64Unescape(json["base64"].get<std::string>(), &value), place, "is not base64");
  }

  template <typename T>
  void Read(const Json& json, const Place& place, std::optional<T>& value) {
    if (json.is_null()) {
      value.reset();
    } else {
      Read(json, place, value.emplace());
    }
  }

  template <typename T>
  void Read(const Json& json, const Place& place, std::vector<T>& values) {
    if (!Require(json.is_array(), place, "is not a list")) return;
    values.assign(json.size(), T{});
    for (size_t i = 0; i < json.size() && fault_.empty(); ++i) Read(json[i], Place{&place, nullptr, i}, values[i]);
  }

  template <typename T>
  void Read(const Json& json, const Place& place, std::map<std::string, T>& values) {
    if (!Require(json.is_array(), place, "is not a list")) return;
    values.clear();
    for (size_t i = 0; i < json.size() && fault_.empty(); ++i) {
      const Place pair{&place, nullptr, i};
      if (!Require(json[i].is_array() && json[i].size() == 2, pair, "is not a key with its value")) return;
      std::string key;
      Read(json[i][0], pair, key);
      Read(json[i][1], pair, values[key]);
    }
  }

 private:
  bool Require(bool good, const Place& place, const char* why) {
    if (!good && fault_.empty()) fault_ = place.Text() + " " + why;
    return good;
  }

  template <typename T>
  void ReadInteger(const Json& json, const Place& place, T& value) {
    if (!Require(json.is_number_integer(), place, "is not a whole number")) return;
    // Above the range of int64 the library keeps an unsigned one.
    const bool fits =
        json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>()) : std::in_range<T>(json.get<int64_t>());
    if (Require(fits, place, "is out of range")) value = json.get<T>();
  }

  template <typename T>
  void ReadWord(const Json& json, const Place& place, T& value) {
    if (!Require(json.is_string(), place, "is not a word")) return;
    const std::optional<T> found = FromWord<T>(json.get<std::string>());
    if (Require(found.has_value(), place, "is not a known word")) value = *found;
  }

  const Json& object_;
  const Place& place_;
  std::string& fault_;
};

absl::Status Damaged(std::string_view why) {
  return Error(absl::StatusCode::kDataLoss, "stored JSON is damaged: {}", why);
}

absl::Status CheckVersion(const Json& document) {
  if (!document.is_object() || !document.contains("v") || !document.contains("value")) {
    return Damaged("it is not an object with v and value");
  }
  const Json& version = document["v"];
  if (!version.is_number_integer()) return Damaged("v is not a whole number");
  if (version > kCodecVersion) {
    return Damaged(fmt::format("it has version {}, this tpd knows up to {}", version.dump(), kCodecVersion));
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
std::string Encode(const T& value) {
  Json document = Json::object();
  document["v"] = kCodecVersion;
  document["value"] = Encoder::ToJson(value);
  return document.dump();
}

template <typename T>
absl::StatusOr<T> Decode(std::string_view json) {
  constexpr bool kThrow = false;
  const Json document = Json::parse(json, nullptr, kThrow);
  if (document.is_discarded()) return Damaged("it is not JSON");
  TP_RETURN_IF_ERROR(CheckVersion(document));
  T value;
  std::string fault;
  const Place top{nullptr, "value"};
  Decoder(document, top, fault).Read(document["value"], top, value);
  if (!fault.empty()) return Damaged(fault);
  return value;
}

template std::string Encode(const std::vector<core::RunDependency>&);
template std::string Encode(const std::vector<core::Notice>&);
template std::string Encode(const core::StepSpec&);
template std::string Encode(const std::vector<core::PastAttempt>&);
template std::string Encode(const core::ResolvedShape&);
template std::string Encode(const std::vector<PoolPlacement>&);
template std::string Encode(const std::vector<RankObservation>&);
template std::string Encode(const core::Meter&);
template std::string Encode(const core::Ending&);
template std::string Encode(const core::Sight&);
template std::string Encode(const AttemptTarget&);
template std::string Encode(const core::QuotaLimits&);

template absl::StatusOr<std::vector<core::RunDependency>> Decode(std::string_view);
template absl::StatusOr<std::vector<core::Notice>> Decode(std::string_view);
template absl::StatusOr<core::StepSpec> Decode(std::string_view);
template absl::StatusOr<std::vector<core::PastAttempt>> Decode(std::string_view);
template absl::StatusOr<core::ResolvedShape> Decode(std::string_view);
template absl::StatusOr<std::vector<PoolPlacement>> Decode(std::string_view);
template absl::StatusOr<std::vector<RankObservation>> Decode(std::string_view);
template absl::StatusOr<core::Meter> Decode(std::string_view);
template absl::StatusOr<core::Ending> Decode(std::string_view);
template absl::StatusOr<core::Sight> Decode(std::string_view);
template absl::StatusOr<AttemptTarget> Decode(std::string_view);
template absl::StatusOr<core::QuotaLimits> Decode(std::string_view);
template absl::StatusOr<std::vector<std::string>> Decode(std::string_view);

}  // namespace tp::store
