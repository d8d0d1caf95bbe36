#include "launch/rank_plan.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/secret_names.h"
#include "base/status.h"

namespace tp::launch {
namespace {

// Limits of the kernel and of tp-rank.
constexpr size_t kMaxArgumentBytes = 128 * 1024 - 1;
constexpr size_t kMaxPathBytes = 2048;
constexpr size_t kMaxRanks = 1024;
constexpr int kMinHeartbeatMs = 10;
constexpr int64_t kMinLogBytes = 4096;
constexpr std::string_view kNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

absl::Status CheckName(std::string_view field, std::string_view value, size_t max_chars) {
  if (!value.empty() && value.size() <= max_chars && value.find_first_not_of(kNameChars) == std::string_view::npos) {
    return absl::OkStatus();
  }
  return InvalidArgument("{} must be 1 to {} characters of [A-Za-z0-9._-]", field, max_chars);
}

absl::Status CheckPath(std::string_view field, std::string_view path) {
  const bool fits = path.starts_with('/') && path.size() <= kMaxPathBytes && !HasNul(path) &&
                    path.find_first_of("\r\n") == std::string_view::npos;
  return fits ? absl::OkStatus()
              : InvalidArgument("{} must be an absolute path of at most {} bytes without line ends", field,
                                kMaxPathBytes);
}

absl::Status CheckArgv(const std::vector<std::string>& argv) {
  if (argv.empty() || argv[0].empty()) return InvalidArgument("argv: there is no command to run");
  for (size_t i = 0; i < argv.size(); ++i) {
    if (HasNul(argv[i])) return InvalidArgument("argv[{}] contains a NUL byte", i);
    if (argv[i].size() > kMaxArgumentBytes) {
      return InvalidArgument("argv[{}] has {} bytes, the kernel allows {}", i, argv[i].size(), kMaxArgumentBytes);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEnv(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name)) {
      return InvalidArgument("env: '{}' is not a name for a variable", name);
    }
    if (HasNul(value)) return InvalidArgument("env: the value of {} contains a NUL byte", name);
    if (name.size() + 1 + value.size() > kMaxArgumentBytes) {
      return InvalidArgument("env: {} has {} bytes, the kernel allows {}", name, value.size(), kMaxArgumentBytes);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const LaunchSpec& spec) {
  if (spec.ranks.empty() || spec.ranks.size() > kMaxRanks) {
    return InvalidArgument("ranks: {} ranks, 1 to {} can be launched", spec.ranks.size(), kMaxRanks);
  }
  int pool = 0;
  int rank = 0;
  for (const RankLaunch& launch : spec.ranks) {
    if (launch.pool == pool + 1 && rank > 0) {
      pool = launch.pool;
      rank = 0;
    }
    if (launch.pool != pool || launch.rank != rank) {
      return InvalidArgument("ranks: rank {}-{} is not in (pool, rank) order", launch.pool, launch.rank);
    }
    ++rank;
    TP_RETURN_IF_ERROR(CheckEnv(launch.env));
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> EnvOf(const RankLaunch& rank, const PlanOptions& options) {
  std::map<std::string, std::string> env = rank.env;
  env.insert(options.base_env.begin(), options.base_env.end());
  return env;
}

}  // namespace

absl::Status CheckSpec(const LaunchSpec& spec) {
  TP_RETURN_IF_ERROR(CheckName("key", spec.key, 64));
  TP_RETURN_IF_ERROR(CheckName("nonce", spec.nonce, 128));
  TP_RETURN_IF_ERROR(CheckPath("paths.attempt_dir", spec.paths.attempt_dir));
  TP_RETURN_IF_ERROR(CheckPath("paths.work_dir", spec.paths.work_dir));
  TP_RETURN_IF_ERROR(CheckPath("paths.output_dir", spec.paths.output_dir));
  TP_RETURN_IF_ERROR(CheckPath("paths.results_dir", spec.paths.results_dir));
  if (spec.heartbeat_ms < kMinHeartbeatMs) {
    return InvalidArgument("heartbeat_ms: {} is below {}", spec.heartbeat_ms, kMinHeartbeatMs);
  }
  if (spec.log_max_bytes < kMinLogBytes) {
    return InvalidArgument("log_max_bytes: {} is below {}", spec.log_max_bytes, kMinLogBytes);
  }
  TP_RETURN_IF_ERROR(CheckArgv(spec.argv));
  return CheckRanks(spec);
}

std::string CgroupOfAttempt(const std::string& cgroup_parent, const std::string& key) {
  return cgroup_parent.empty() ? "" : fmt::format("{}/{}", cgroup_parent, key);
}

std::vector<std::string> RunArguments(const LaunchSpec& spec, const RankLaunch& rank, const PlanOptions& options) {
  std::vector<std::string> arguments = {
      "--dir",           spec.paths.attempt_dir,
      "--key",           spec.key,
      "--nonce",         spec.nonce,
      "--pool",          std::to_string(rank.pool),
      "--rank",          std::to_string(rank.rank),
      "--workdir",       spec.paths.work_dir,
      "--log-max-bytes", std::to_string(spec.log_max_bytes),
      "--heartbeat-ms",  std::to_string(spec.heartbeat_ms),
  };
  if (!options.cgroup_parent.empty()) {
    arguments.emplace_back("--cgroup");
    arguments.push_back(
        fmt::format("{}/{}-{}", CgroupOfAttempt(options.cgroup_parent, spec.key), rank.pool, rank.rank));
  }
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), spec.argv.begin(), spec.argv.end());
  return arguments;
}

std::string RenderPlan(const LaunchSpec& spec, const PlanOptions& options) {
  std::string payload;
  const auto add = [&payload](char kind, std::string_view text) {
    payload += kind;
    payload += text;
    payload += '\0';
  };
  for (const RankLaunch& rank : spec.ranks) {
    add('R', "");
    for (const auto& [name, value] : EnvOf(rank, options)) add('E', fmt::format("{}={}", name, value));
    for (const std::string& argument : RunArguments(spec, rank, options)) add('A', argument);
  }
  return fmt::format("tp-plan 1 {} {}\n", spec.ranks.size(), payload.size()) + payload;
}

std::string DescribePlan(const LaunchSpec& spec, const PlanOptions& options) {
  std::string text;
  for (const RankLaunch& rank : spec.ranks) {
    text += fmt::format("rank {}-{} on {}\n", rank.pool, rank.rank,
                        rank.placement.node.empty() ? "this machine" : rank.placement.node);
    for (const auto& [name, value] : EnvOf(rank, options)) {
      text += fmt::format("  env {}={}\n", name, LooksSecret(name, value) ? kMaskedValue : value);
    }
    text += "  tp-rank run";
    for (const std::string& argument : RunArguments(spec, rank, options)) text += " " + argument;
    text += "\n";
  }
  return text;
}

}  // namespace tp::launch
