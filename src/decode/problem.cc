#include "decode/problem.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/status.h"

namespace tp::decode {

std::vector<std::string> Problems::Lines() const {
  constexpr size_t kShown = 100;
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) { return a.at < b.at; });
  std::vector<std::string> lines;
  for (const Problem& problem : sorted) {
    if (lines.size() == kShown) {
      lines.push_back(fmt::format("{}: and {} more", file_, sorted.size() - kShown));
      break;
    }
    lines.push_back(fmt::format("{}:{}:{}: {}", file_, problem.at.line, problem.at.column, problem.sentence));
  }
  return lines;
}

absl::Status ToStatus(const std::vector<const Problems*>& files) {
  std::vector<std::string> lines;
  for (const Problems* file : files) {
    for (std::string& line : file->Lines()) lines.push_back(std::move(line));
  }
  if (lines.empty()) return absl::OkStatus();
  return InvalidArgument("{}", fmt::join(lines, "\n"));
}

}  // namespace tp::decode
