#include "cli/ranks.h"

#include <algorithm>
#include <string_view>

#include "base/status.h"

namespace tp::cli {
namespace {

constexpr std::string_view kAll = "*";

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsPoolAndRank(std::string_view text) {
  const size_t dash = text.find('-');
  return dash != std::string_view::npos && IsNumber(text.substr(0, dash)) && IsNumber(text.substr(dash + 1));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseRanks(const std::vector<std::string>& flags) {
  std::vector<std::string> ranks;
  for (const std::string& flag : flags) {
    if (flag == "all") return std::vector<std::string>{std::string(kAll)};
    if (IsNumber(flag)) {
      ranks.push_back("0-" + flag);
    } else if (IsPoolAndRank(flag)) {
      ranks.push_back(flag);
    } else {
      return InvalidArgument("--rank {}: write a rank (3), a pool and a rank (1-0), or all", flag);
    }
  }
  return ranks;
}

bool AreSeveral(const std::vector<std::string>& ranks) {
  return ranks.size() > 1 || (ranks.size() == 1 && ranks.front() == kAll);
}

}  // namespace tp::cli
