// Paths inside a snapshot, by their bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace tp::snapshot {

inline constexpr size_t kMaxNameBytes = 255;   // NAME_MAX
inline constexpr size_t kMaxPathBytes = 4095;  // PATH_MAX without its NUL

// Takes the part before the first `/`, or all, and the slash with it.
inline std::string_view TakePart(std::string_view* rest) {
  const size_t slash = rest->find('/');
  const std::string_view part = rest->substr(0, slash);
  rest->remove_prefix(slash == std::string_view::npos ? rest->size() : slash + 1);
  return part;
}

// Empty: the root of the tree.
inline std::string_view ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

inline std::string_view NameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace tp::snapshot
