// "Did you mean ...?": the closest of a set of names.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tp {

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`, case ignored.
inline size_t EditDistance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The candidate that is nearest to `name`, if it is near enough to be a slip: one edit, or one in three
// characters, or the end left out (`kubernetes` of `kubernetes_job`). The first of equals.
template <typename Names>
std::optional<std::string> NearMiss(std::string_view name, const Names& candidates) {
  constexpr size_t kLongestName = 64;
  constexpr size_t kShortestBeginning = 4;
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  const size_t farthest = std::max<size_t>(1, name.size() / 3);
  size_t best = farthest + 1;
  std::optional<std::string> nearest;
  for (const auto& candidate : candidates) {
    const std::string_view text = candidate;
    if (text.size() > kLongestName) continue;
    const bool is_beginning = name.size() >= kShortestBeginning && text.substr(0, name.size()) == name;
    const size_t edits = EditDistance(name, text);
    if (const size_t distance = is_beginning ? std::min(edits, farthest) : edits; distance < best) {
      best = distance;
      nearest = std::string(text);
    }
  }
  return nearest;
}

}  // namespace tp
