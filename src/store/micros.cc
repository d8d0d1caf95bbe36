#include "store/micros.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "store/fields.h"

namespace tp::store {
namespace {

// Walks a value to its times; everything else stays as it is.
class Rounder {
 public:
  template <typename T>
  void operator()(const char* /*name*/, T& value) {
    Visit(value);
  }

 private:
  template <typename T>
  void Visit(T& value) {
    if constexpr (std::is_same_v<T, absl::Time> || std::is_same_v<T, absl::Duration>) {
      RoundToMicros(value);
    } else if constexpr (requires(Rounder & rounder) { Fields(rounder, value); }) {
      Fields(*this, value);
    }
  }

  template <typename T>
  void Visit(std::optional<T>& value) {
    if (value) Visit(*value);
  }

  template <typename T>
  void Visit(std::vector<T>& values) {
    for (T& value : values) Visit(value);
  }
};

template <typename T>
void RoundAll(T& value) {
  Rounder rounder;
  Fields(rounder, value);
}

}  // namespace

void RoundToMicros(core::Run& run) { RoundAll(run); }
void RoundToMicros(core::Step& step) { RoundAll(step); }
void RoundToMicros(core::QuotaRule& rule) { RoundAll(rule); }
void RoundToMicros(core::StorageUse& use) { RoundAll(use); }
void RoundToMicros(core::Correction& correction) { RoundAll(correction); }

}  // namespace tp::store
