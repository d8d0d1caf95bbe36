// The only bridge between std::string_view and Debian's absl::string_view, which are different types
// (Abseil 20220623 is built with its own). Everything else in the project uses std::string_view.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tp {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

inline std::string_view Message(const absl::Status& status) { return ToStd(status.message()); }

// Lets maps keyed by std::string be searched by std::string_view without a copy.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

}  // namespace tp
