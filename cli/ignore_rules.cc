#include "cli/ignore_rules.h"

#include <fmt/format.h>

namespace tp::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

IgnoreRules::IgnoreRules(const std::vector<std::string_view>& defaults) {
  Level level;
  for (const std::string_view line : defaults) {
    if (auto pattern = IgnorePattern::Parse(line)) level.lines.push_back({0, *std::move(pattern)});
  }
  levels_.push_back(std::move(level));
}

void IgnoreRules::Enter(std::string_view directory, std::string_view content) {
  Level level;
  level.directory = directory;
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !content.empty(); ++number) {
    const size_t end = content.find('\n');
    if (auto pattern = IgnorePattern::Parse(content.substr(0, end))) {
      level.lines.push_back({number, *std::move(pattern)});
    }
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
  }
  levels_.push_back(std::move(level));
}

std::optional<IgnoreRule> IgnoreRules::LeftOutBy(std::string_view path, bool is_directory) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const std::string_view below = path.substr(level->directory.size());
    for (auto line = level->lines.rbegin(); line != level->lines.rend(); ++line) {
      if (!line->pattern.Matches(below, is_directory)) continue;
      if (line->pattern.negated()) return std::nullopt;
      const bool is_default = line->number == 0;
      return IgnoreRule{.file = is_default ? "" : fmt::format("{}{}", level->directory, kIgnoreFile),
                        .line = line->number,
                        .text = line->pattern.text()};
    }
  }
  return std::nullopt;
}

}  // namespace tp::cli
