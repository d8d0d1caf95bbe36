#include "cli/arguments.h"

#include <algorithm>
#include <numeric>

namespace tp::cli {
namespace {

constexpr size_t kMostEdits = 2;

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Arguments SplitArguments(int argc, const char* const* argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (arguments.has_command) {
      arguments.command.emplace_back(word);
    } else if (word == "--") {
      arguments.has_command = true;
    } else {
      arguments.own.emplace_back(word);
    }
  }
  return arguments;
}

std::optional<std::string> NearMiss(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  size_t fewest = std::min(kMostEdits, (word.size() + 1) / 2) + 1;
  for (const std::string& candidate : known) {
    const size_t edits = EditDistance(word, candidate);
    if (edits >= fewest || 2 * edits >= candidate.size() + 1) continue;
    fewest = edits;
    best = candidate;
  }
  return best;
}

}  // namespace tp::cli
