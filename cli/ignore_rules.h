// Which files of a directory stay out of a snapshot: default excludes, and the .tpignore files at any depth,
// as git would read them were they named .gitignore: the last matching line of the deepest file decides, and
// what lies in a directory that is left out can't be brought back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ignore_pattern.h"

namespace tp::cli {

inline constexpr std::string_view kIgnoreFile = ".tpignore";

// The rule that left something out.
struct IgnoreRule {
  std::string file;  // relative to the root; empty: a default exclude
  int line = 0;
  std::string text;
};

// The rules that hold in one directory while a tree is walked: Enter on the way down, Leave on the way up.
class IgnoreRules {
 public:
  // Lowest in rank, so that a .tpignore may bring back what they leave out.
  explicit IgnoreRules(const std::vector<std::string_view>& defaults);

  // `content` is that of the directory's ignore file, empty where it has none. `directory` is relative to the
  // root and ends in `/`, or empty.
  void Enter(std::string_view directory, std::string_view content);
  void Leave() { levels_.pop_back(); }

  // `path` lies in the directory entered last.
  std::optional<IgnoreRule> LeftOutBy(std::string_view path, bool is_directory) const;

 private:
  struct Line {
    int number = 0;
    IgnorePattern pattern;
  };
  struct Level {
    std::string directory;
    std::vector<Line> lines;
  };

  std::vector<Level> levels_;  // the first: the defaults
};

}  // namespace tp::cli
