// The declarative decoder. A `Type<T>` is one description of how a T is written in YAML; from it come
// decoding, the sentences of problems, defaults, the JSON Schema and the reference page. Types are built
// from one another: Record, ListOf, MapOf, Integer, Text, ...
//
// `decode` adds to `problems` and returns false where the value is not usable; it goes on after a
// problem where it can. Immutable once built; used from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "base/near_miss.h"
#include "base/printable.h"
#include "decode/problem.h"
#include "decode/schema.h"
#include "decode/yaml_tree.h"

namespace tp::decode {

struct RecordDoc;

// One key of a record, for people.
struct FieldDoc {
  std::string key;
  std::string type;      // in words: `duration`, `list of nodes`
  std::string fallback;  // what holds without the key; empty: nothing to say
  std::string sentence;
  bool required = false;
  std::shared_ptr<const RecordDoc> record;  // of the value, or of its elements
  Schema schema;
};

struct RecordDoc {
  std::string name;  // `a series`
  std::vector<FieldDoc> fields;
};

template <typename T>
struct Type {
  std::string words;
  std::function<bool(const YamlValue&, Problems&, T&)> decode;
  std::function<std::string(const T&)> text;  // how a default is written; may be empty
  std::shared_ptr<const RecordDoc> record;
  Schema schema = Schema::object();  // says nothing
};

// `expected a duration such as 30s, found a list`
void AddMismatch(const YamlValue& value, std::string_view expected, Problems& problems);

// `unknown key 'x' in a series; did you mean y?`, or what there is.
void AddUnknown(Position at, std::string_view what, std::string_view name, std::string_view where,
                const std::vector<std::string>& known, Problems& problems);

// --- Scalars --------------------------------------------------------------------------------------

// Text in any form but a number or boolean without quotes. `check` returns what is wrong, or nothing;
// `pattern` is what of that a JSON Schema can say.
using TextCheck = std::function<std::optional<std::string>(const std::string&)>;
Type<std::string> Text(const std::string& words, TextCheck check = nullptr, const std::string& pattern = "");

// [a-z0-9][a-z0-9._-]*, at most 63: series, profiles, nodes, frameworks.
Type<std::string> Name(const std::string& words);

// Any scalar, as it is written: values of environment variables.
Type<std::string> Scalar(const std::string& words);

Type<bool> Boolean();
Type<int64_t> Integer(int64_t min, int64_t max);
Type<int> SmallInteger(int min, int max);
Type<absl::Duration> DurationBetween(absl::Duration min, absl::Duration max);
Type<int64_t> ByteSize(int64_t min, int64_t max);  // `512MiB`

template <typename E>
Type<E> Choice(const std::vector<std::pair<std::string, E>>& choices) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices) names.push_back(name);
  std::string words = "one of";
  for (const std::string& name : names) words += (name == names.front() ? " " : ", ") + name;
  Type<E> type;
  type.words = words;
  type.schema = {{"enum", names}};
  type.decode = [choices, names, words](const YamlValue& value, Problems& problems, E& out) {
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, words, problems);
      return false;
    }
    for (const auto& [name, choice] : choices) {
      if (name != value.text) continue;
      out = choice;
      return true;
    }
    const auto near = NearMiss(value.text, names);
    AddMismatch(value, near ? fmt::format("{} (did you mean {}?)", words, *near) : words, problems);
    return false;
  };
  type.text = [choices](const E& value) {
    for (const auto& [name, choice] : choices) {
      if (choice == value) return name;
    }
    return std::string();
  };
  return type;
}

// --- Around other types ---------------------------------------------------------------------------

// The value as it stands in the file, for what is decoded once more is known.
Type<YamlValue> Raw(std::string words, Schema schema);

// A value and where it was; `at` keeps its default where the key is missing.
template <typename T>
struct Located {
  T value{};
  Position at;
};

template <typename T>
Type<Located<T>> At(const Type<T>& inner) {
  Type<Located<T>> type;
  type.words = inner.words;
  type.record = inner.record;
  type.schema = inner.schema;
  type.decode = [inner](const YamlValue& value, Problems& problems, Located<T>& out) {
    out.at = value.at;
    return inner.decode(value, problems, out.value);
  };
  if (inner.text) type.text = [inner](const Located<T>& value) { return inner.text(value.value); };
  return type;
}

template <typename T>
Type<std::optional<T>> Optional(const Type<T>& inner) {
  Type<std::optional<T>> type;
  type.words = inner.words;
  type.record = inner.record;
  type.schema = inner.schema;
  type.decode = [inner](const YamlValue& value, Problems& problems, std::optional<T>& out) {
    out.emplace();
    return inner.decode(value, problems, *out);
  };
  return type;
}

template <typename T>
Type<std::vector<T>> ListOf(const Type<T>& element, const std::string& words) {
  Type<std::vector<T>> type;
  type.words = words;
  type.record = element.record;
  type.schema = {{"type", "array"}, {"items", element.schema}};
  type.decode = [element, words](const YamlValue& value, Problems& problems, std::vector<T>& out) {
    if (value.kind != YamlValue::Kind::kList) {
      AddMismatch(value, "a list", problems);
      return false;
    }
    bool good = true;
    for (const YamlValue& item : value.items) {
      T decoded{};
      good = element.decode(item, problems, decoded) && good;
      out.push_back(std::move(decoded));
    }
    return good;
  };
  return type;
}

// One entry of a mapping with free keys.
template <typename K, typename V>
struct Entry {
  K key{};
  Position at;  // of the key
  V value{};
};
template <typename K, typename V>
using Entries = std::vector<Entry<K, V>>;

template <typename K, typename V>
Type<Entries<K, V>> MapOf(const Type<K>& key, const Type<V>& element, const std::string& words) {
  Type<Entries<K, V>> type;
  type.words = words;
  type.record = element.record;
  type.schema = MapSchema(key.schema, element.schema);
  type.decode = [key, element](const YamlValue& value, Problems& problems, Entries<K, V>& out) {
    if (value.kind != YamlValue::Kind::kMap) {
      AddMismatch(value, "a mapping", problems);
      return false;
    }
    bool good = true;
    for (const auto& [name, item] : value.entries) {
      YamlValue as_value;
      as_value.kind = YamlValue::Kind::kScalar;
      as_value.at = name.at;
      as_value.text = name.text;
      Entry<K, V> entry;
      entry.at = name.at;
      const bool key_good = key.decode(as_value, problems, entry.key);
      good = element.decode(item, problems, entry.value) && key_good && good;
      if (key_good) out.push_back(std::move(entry));
    }
    return good;
  };
  return type;
}

// --- Records --------------------------------------------------------------------------------------

template <typename T>
struct Field {
  FieldDoc doc;
  std::function<bool(const YamlValue&, Problems&, T&)> decode;
};

template <typename T, typename M>
Field<T> Key(std::string key, M T::*member, const Type<M>& type, std::string sentence) {
  Field<T> field;
  field.doc.key = std::move(key);
  field.doc.type = type.words;
  field.doc.sentence = std::move(sentence);
  field.doc.record = type.record;
  if (type.text) field.doc.fallback = type.text(T{}.*member);
  field.doc.schema = FieldSchema(type.schema, field.doc.sentence, field.doc.fallback);
  field.decode = [member, type](const YamlValue& value, Problems& problems, T& out) {
    return type.decode(value, problems, out.*member);
  };
  return field;
}

template <typename T, typename M>
Field<T> RequiredKey(std::string key, M T::*member, const Type<M>& type, std::string sentence) {
  Field<T> field = Key(std::move(key), member, type, std::move(sentence));
  field.doc.required = true;
  field.doc.fallback.clear();
  field.doc.schema.erase("default");
  return field;
}

// The mapping's shape: known keys once each, the required ones present, none without a value.
bool CheckKeys(const YamlValue& value, const RecordDoc& doc, Problems& problems);

// An object of the record's keys and no others.
Schema RecordSchema(const RecordDoc& doc);

template <typename T>
Type<T> Record(std::string name, std::vector<Field<T>> fields) {
  auto doc = std::make_shared<RecordDoc>();
  doc->name = name;
  for (const Field<T>& field : fields) doc->fields.push_back(field.doc);
  Type<T> type;
  type.words = std::move(name);
  type.record = doc;
  type.schema = RecordSchema(*doc);
  type.decode = [doc, fields = std::move(fields)](const YamlValue& value, Problems& problems, T& out) {
    bool good = CheckKeys(value, *doc, problems);
    for (const auto& [key, item] : value.entries) {
      for (const Field<T>& field : fields) {
        if (field.doc.key != key.text || item.kind == YamlValue::Kind::kNull) continue;
        good = field.decode(item, problems, out) && good;
      }
    }
    return good;
  };
  return type;
}

}  // namespace tp::decode
