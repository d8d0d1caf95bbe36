// Random values of everything that store/fields.h lists, hostile bytes included. The same seed gives the
// same values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "base/boxed.h"
#include "store/fields.h"
#include "store/micros.h"
#include "store/words.h"

namespace tp::store {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  template <typename T>
  T Make() {
    T value{};
    Fill(value);
    return value;
  }

  // A visitor of Fields.
  template <typename T>
  void operator()(const char* /*name*/, T& value) {
    Fill(value);
  }

 private:
  template <typename T>
  void Fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = Below(2) == 1;
    } else if constexpr (std::is_integral_v<T>) {
      value = Number<T>();
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(Below(CountOf<T>()));
    } else if constexpr (std::is_same_v<T, absl::Time>) {
      value = TimeOf(Number<int64_t>());
    } else if constexpr (std::is_same_v<T, absl::Duration>) {
      value = DurationOf(Number<int64_t>());
    } else {
      Fields(*this, value);
    }
  }

  void Fill(std::string& value) {
    static const std::vector<std::string> kCorners = {"",
                                                      "plain",
                                                      "quote \" and \\ back",
                                                      std::string("nul \0 inside", 12),
                                                      "\xff\xfe not utf-8",
                                                      "ends in the middle \xe2\x82",
                                                      "\xed\xa0\x80",
                                                      "snowman \xe2\x98\x83",
                                                      "line\nbreak\ttab\x01\x7f",
                                                      "{\"base64\": \"aGk=\"}",
                                                      "'; DROP TABLE run; --"};
    if (Below(2) == 0) {
      value = kCorners[Below(kCorners.size())];
      return;
    }
    value.resize(Below(20));
    for (char& byte : value) byte = static_cast<char>(Below(256));
  }

  template <typename Optional>
  void FillOptional(Optional& value) {
    value.reset();
    if (Below(3) != 0) Fill(value.emplace());
  }
  template <typename T>
  void Fill(std::optional<T>& value) {
    FillOptional(value);
  }
  template <typename T>
  void Fill(Boxed<T>& value) {
    FillOptional(value);
  }

  template <typename T>
  void Fill(std::vector<T>& values) {
    values.assign(Below(4), T{});
    for (T& value : values) Fill(value);
  }

  template <typename T>
  void Fill(std::map<std::string, T>& values) {
    values.clear();
    for (uint64_t left = Below(4); left > 0; --left) values[Make<std::string>()] = Make<T>();
  }

  template <typename T>
  T Number() {
    switch (Below(6)) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      case 2:
        return 0;
      case 3:
        return static_cast<T>(Below(1000));
      default:
        return static_cast<T>(random_());
    }
  }

  template <typename E>
  static uint64_t CountOf() {
    uint64_t count = 0;
    while (!Word(static_cast<E>(count)).empty()) ++count;
    return count;
  }

  std::mt19937_64 random_;
};

}  // namespace tp::store
