#include "launch/engine_call.h"

#include <string>
#include <utility>

#include "base/status.h"

namespace tp::launch {

AttemptTarget TargetOf(const LaunchSpec& spec) {
  AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {}};
  for (const RankLaunch& rank : spec.ranks) {
    target.ranks_per_pool.resize(static_cast<size_t>(rank.pool) + 1);
    ++target.ranks_per_pool.back();
    target.hosts.push_back({rank.placement.node, rank.placement.address});
  }
  return target;
}

LaunchResult RefusalOf(const absl::Status& prepared) {
  std::string reason(Message(prepared));
  switch (prepared.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return LaunchRejected{LaunchRejected::Kind::kStorage, std::move(reason)};
    default:
      return LaunchRefused{std::move(reason)};
  }
}

const char* SignalWord(StopLevel level) {
  switch (level) {
    case StopLevel::kWarn:
      return "warn";
    case StopLevel::kTerm:
      return "term";
    case StopLevel::kKill:
      return "kill";
  }
  return "kill";
}

}  // namespace tp::launch
