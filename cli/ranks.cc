#include "cli/ranks.h"

#include <algorithm>
#include <string_view>

#include "base/status.h"

namespace tp::cli {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 6 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The newest step that has an attempt, else the first.
const v1::Step* NewestStarted(const v1::Run& run) {
  const auto newest = std::find_if(run.steps().rbegin(), run.steps().rend(),
                                   [](const v1::Step& step) { return step.has_attempt() || step.past_attempts_size() > 0; });
  return newest != run.steps().rend() ? &*newest : &run.steps(0);
}

}  // namespace

bool WantsAllRanks(const std::vector<std::string>& flags) {
  return std::find(flags.begin(), flags.end(), "all") != flags.end();
}

absl::StatusOr<std::vector<std::string>> ParseRanks(const std::vector<std::string>& flags) {
  std::vector<std::string> ranks;
  for (const std::string& flag : flags) {
    const std::string_view text = flag;
    const size_t dash = text.find('-');
    if (IsNumber(text)) {
      ranks.push_back("0-" + flag);
    } else if (dash != std::string_view::npos && IsNumber(text.substr(0, dash)) && IsNumber(text.substr(dash + 1))) {
      ranks.push_back(flag);
    } else {
      return InvalidArgument("--rank {}: write a rank (3), a pool and a rank (1-0), or all", flag);
    }
  }
  return ranks;
}

absl::StatusOr<std::vector<std::string>> AllRanks(const v1::Run& run, int32_t number) {
  if (run.steps_size() == 0 || number > run.steps_size()) {
    return InvalidArgument("--step {}: {} has {} step(s)", number, run.id(), run.steps_size());
  }
  const v1::Step& step = number > 0 ? run.steps(number - 1) : *NewestStarted(run);
  if (step.spec().profiles_size() > 1) {
    return InvalidArgument("--rank all: {} has several pools; name its ranks as POOL-RANK, e.g. --rank 0-0,1-0", run.id());
  }
  std::vector<std::string> ranks;
  for (int32_t rank = 0; rank < std::max(step.nodes(), 1); ++rank) ranks.push_back("0-" + std::to_string(rank));
  return ranks;
}

}  // namespace tp::cli
