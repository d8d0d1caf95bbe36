// One value of each element.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tp::cli {

template <typename Range, typename Function>
auto Collect(const Range& range, Function function) {
  std::vector<decltype(function(*range.begin()))> values;
  values.reserve(static_cast<size_t>(range.size()));
  for (const auto& element : range) values.push_back(function(element));
  return values;
}

}  // namespace tp::cli
