#include "core/launch_plan.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/status.h"
#include "core/json_text.h"
#include "core/resource.h"

namespace tp::core {
namespace {

using Env = std::map<std::string, std::string>;

// --- Paths ----------------------------------------------------------------------------------------

bool IsPathByte(char c, bool first) {
  const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric || c == '-' || c == '_' || c == '+' || c == '@' || (c == '.' && !first);
}

// One component that is never empty, `.`, `..`, hidden or split, and different for different names.
std::string PathComponent(std::string_view name) {
  if (name.empty()) return "%";
  std::string out;
  for (const char c : name) {
    if (IsPathByte(c, out.empty())) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// Names are checked where they come in; a launch does not go on with one that had to be rewritten.
absl::Status CheckPathName(std::string_view what, std::string_view name) {
  constexpr size_t kLongest = 128;
  if (!name.empty() && name.size() <= kLongest && PathComponent(name) == name) return absl::OkStatus();
  return Internal("{} {} cannot be part of a path: it is 1 to {} of [A-Za-z0-9_.@+-], no dot first", what, Quoted(name),
                  kLongest);
}

absl::Status CheckNames(const LaunchLayout& layout, const Run& run, const Step& step) {
  TP_RETURN_IF_ERROR(CheckPathName("owner", run.owner));
  TP_RETURN_IF_ERROR(CheckPathName("run id", run.id()));
  TP_RETURN_IF_ERROR(CheckPathName("step name", step.spec.name));
  if (layout.storage_root.empty() || layout.storage_root[0] != '/') {
    return Internal("storage.root {} is not an absolute path", Quoted(layout.storage_root));
  }
  return absl::OkStatus();
}

// --- Pools ----------------------------------------------------------------------------------------

absl::Status CheckPlacement(const PoolShape& shape, const PoolPlacement& placement, size_t pool) {
  if (shape.nodes < 1) return Internal("pool {}: the shape has {} nodes", pool, shape.nodes);
  if (placement.series != shape.series || placement.profile != shape.profile || placement.roles != shape.roles ||
      placement.gpus_per_node != shape.gpus_per_node || static_cast<int64_t>(placement.ranks.size()) != shape.nodes) {
    return Internal("pool {}: the placement does not fit the shape {}:{} of {} nodes x {}", pool, shape.profile,
                    shape.cards(), shape.nodes, shape.gpus_per_node);
  }
  for (const RankPlacement& rank : placement.ranks) {
    if (!rank.cards.empty() && static_cast<int>(rank.cards.size()) != shape.gpus_per_node) {
      return Internal("pool {}: node {} gives {} cards, the shape needs {}", pool, Quoted(rank.node), rank.cards.size(),
                      shape.gpus_per_node);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlacements(const Attempt& attempt) {
  const size_t pools = attempt.shape.pools.size();
  if (pools == 0) return Internal("the shape has no pool");
  if (attempt.placement.size() != pools) {
    return Internal("the shape has {} pools, the placement {}", pools, attempt.placement.size());
  }
  for (size_t pool = 0; pool < pools; ++pool) {
    TP_RETURN_IF_ERROR(CheckPlacement(attempt.shape.pools[pool], attempt.placement[pool], pool));
  }
  return absl::OkStatus();
}

// The first role, or the profile where a job has no roles: unique in the job, readable in scripts.
const std::string& PoolName(const PoolPlacement& pool) {
  return pool.roles.empty() ? pool.profile : pool.roles.front();
}

std::string JsonStrings(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(JsonString(text));
  return fmt::format("[{}]", fmt::join(quoted, ","));
}

// `hosts` and `master_port` are missing where the engine chooses them.
std::string PoolJson(size_t index, const PoolPlacement& pool) {
  std::string out =
      fmt::format(R"({{"index":{},"name":{},"roles":{},"series":{},"profile":{},"nodes":{},"gpus_per_node":{})", index,
                  JsonString(PoolName(pool)), JsonStrings(pool.roles), JsonString(pool.series),
                  JsonString(pool.profile), pool.ranks.size(), pool.gpus_per_node);
  std::vector<std::string> hosts;
  for (const RankPlacement& rank : pool.ranks) {
    if (!rank.address.empty()) hosts.push_back(rank.address);
  }
  if (hosts.size() == pool.ranks.size()) out += fmt::format(R"(,"hosts":{})", JsonStrings(hosts));
  if (pool.master_port != 0) out += fmt::format(R"(,"master_port":{})", pool.master_port);
  return out + "}";
}

std::string PoolsJson(const std::vector<PoolPlacement>& pools) {
  std::vector<std::string> items;
  items.reserve(pools.size());
  for (size_t index = 0; index < pools.size(); ++index) items.push_back(PoolJson(index, pools[index]));
  return fmt::format("[{}]", fmt::join(items, ","));
}

std::string OverridesJson(const PoolShape& pool) {
  std::vector<std::string> items;
  items.reserve(pool.overrides_json.size());
  for (const auto& [framework, json] : pool.overrides_json) {
    items.push_back(fmt::format("{}:{}", JsonString(framework), json));
  }
  return fmt::format("{{{}}}", fmt::join(items, ","));
}

// --- Environment ----------------------------------------------------------------------------------

void SetKnown(Env& env, const char* name, const std::string& value) {
  if (!value.empty()) env[name] = value;
}

void SetPort(Env& env, const char* name, int port) {
  if (port != 0) env[name] = std::to_string(port);
}

// What distributed launchers read.
Env RendezvousEnv(const PoolPlacement& first, const PoolPlacement& own, size_t rank) {
  Env env;
  SetKnown(env, "MASTER_ADDR", first.ranks.front().address);
  SetPort(env, "MASTER_PORT", first.master_port);
  SetKnown(env, "PET_MASTER_ADDR", own.ranks.front().address);
  SetPort(env, "PET_MASTER_PORT", own.master_port);
  env["PET_NNODES"] = std::to_string(own.ranks.size());
  env["PET_NODE_RANK"] = std::to_string(rank);
  env["PET_NPROC_PER_NODE"] = std::to_string(own.gpus_per_node == 0 ? 1 : own.gpus_per_node);
  return env;
}

// The same for all ranks of an attempt.
Env AttemptEnv(const LaunchSpec& spec, const Step& step) {
  Env env;
  env["TP_RUN_ID"] = spec.run_id;
  env["TP_STEP"] = spec.step_name;
  env["TP_ATTEMPT"] = std::to_string(spec.attempt);
  env["TP_RETRY_COUNT"] = std::to_string(step.retry_count);
  env["TP_USER"] = spec.owner;
  if (step.spec.array_index) env["TP_ARRAY_INDEX"] = std::to_string(*step.spec.array_index);
  env["TP_OUTPUT_DIR"] = spec.paths.output_dir;
  env["TP_WORK_DIR"] = spec.paths.work_dir;
  env["TP_RESULTS_DIR"] = spec.paths.results_dir;
  env["TP_METRICS_FILE"] = spec.paths.attempt_dir + "/metrics.jsonl";
  env["TP_PAUSE_FILE"] = spec.paths.attempt_dir + "/pause";
  const std::vector<PoolPlacement>& placement = step.attempt->placement;
  env["TP_POOLS"] = PoolsJson(placement);
  SetKnown(env, "TP_HEAD_ADDR", placement.front().ranks.front().address);
  return env;
}

// What the ranks of a pool share besides.
Env PoolEnv(const LaunchSpec& spec, const PoolShape& shape, const PoolPlacement& pool, size_t index) {
  const int64_t world_size = pool.gpus_per_node == 0 ? shape.nodes : shape.cards();
  Env env;
  env["TP_ROLES"] = fmt::format("{}", fmt::join(pool.roles, ","));
  env["TP_POOL"] = PoolName(pool);
  env["TP_POOL_INDEX"] = std::to_string(index);
  env["TP_NNODES"] = std::to_string(shape.nodes);
  env["TP_GPUS_PER_NODE"] = std::to_string(shape.gpus_per_node);
  env["TP_WORLD_SIZE"] = std::to_string(world_size);
  env["TP_OVERRIDES_FILE"] = fmt::format("{}/{}", spec.paths.attempt_dir, OverridesFileName(static_cast<int>(index)));
  env.insert(shape.overrides_env.begin(), shape.overrides_env.end());
  return env;
}

Env RankEnv(const RankPlacement& placement, size_t rank) {
  Env env;
  env["TP_NODE_RANK"] = std::to_string(rank);
  if (placement.node.empty()) return env;
  env["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(placement.cards, ","));
  // The order of nvidia-smi, which the numbers are of; CUDA's own begins with the fastest.
  env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  return env;
}

// Later layers win.
Env Layered(std::initializer_list<const Env*> layers) {
  Env env;
  for (const Env* layer : layers) {
    for (const auto& [name, value] : *layer) env[name] = value;
  }
  return env;
}

absl::Status AddPool(LaunchSpec& spec, const Step& step, const Env& attempt_env, size_t index) {
  const PoolShape& shape = step.attempt->shape.pools[index];
  const PoolPlacement& pool = step.attempt->placement[index];
  const PoolPlacement& first = step.attempt->placement.front();
  TP_ASSIGN_OR_RETURN(const Env merged, MergeEnv(step.spec, shape, nullptr));
  TP_RETURN_IF_ERROR(CheckUserEnv(merged, fmt::format("pool {}", index)));
  const Env pool_env = PoolEnv(spec, shape, pool, index);
  for (size_t rank = 0; rank < pool.ranks.size(); ++rank) {
    const Env rendezvous = RendezvousEnv(first, pool, rank);
    const Env rank_env = RankEnv(pool.ranks[rank], rank);
    RankLaunch launch;
    launch.pool = static_cast<int>(index);
    launch.rank = static_cast<int>(rank);
    launch.placement = pool.ranks[rank];
    launch.env = Layered({&rendezvous, &merged, &attempt_env, &pool_env, &rank_env});
    spec.ranks.push_back(std::move(launch));
  }
  spec.overrides_json.push_back(OverridesJson(shape));
  spec.demands.push_back(shape.demand);
  return absl::OkStatus();
}

LaunchSpec Frame(const LaunchLayout& layout, const Run& run, const Step& step) {
  const Attempt& attempt = *step.attempt;
  LaunchSpec spec;
  spec.key = attempt.key;
  spec.nonce = attempt.nonce;
  spec.owner = run.owner;
  spec.run_id = run.id();
  spec.step_name = step.spec.name;
  spec.attempt = attempt.number;
  spec.executor = attempt.shape.executor;
  spec.executor_config = attempt.shape.executor_config;
  spec.image = step.spec.image;
  spec.snapshot_id = run.snapshot_id;
  spec.paths = PathsOf(layout, run, step, attempt.number);
  spec.argv = step.spec.argv;
  spec.log_max_bytes = layout.log_max_bytes;
  spec.heartbeat_ms = layout.heartbeat_ms;
  return spec;
}

}  // namespace

std::string RunDirectoryOf(const LaunchLayout& layout, const Run& run) {
  return fmt::format("{}/{}/{}", layout.storage_root, PathComponent(run.owner), PathComponent(run.id()));
}

AttemptPaths PathsOf(const LaunchLayout& layout, const Run& run, const Step& step, int32_t attempt) {
  const std::string run_dir = RunDirectoryOf(layout, run);
  const std::string step_name = PathComponent(step.spec.name);
  AttemptPaths paths;
  paths.attempt_dir = fmt::format("{}/attempts/{}-{}", run_dir, step_name, attempt);
  paths.work_dir = paths.attempt_dir + "/work";
  paths.output_dir = run_dir + "/output";
  paths.results_dir = fmt::format("{}/results/{}", run_dir, step_name);
  return paths;
}

std::string OverridesFileName(int pool) {
  return pool == 0 ? "overrides.json" : fmt::format("overrides-{}.json", pool);
}

absl::StatusOr<LaunchSpec> PlanLaunch(const LaunchLayout& layout, const Run& run, const Step& step) {
  if (!step.attempt.has_value()) return Internal("step {} has no attempt to launch", Quoted(step.spec.name));
  TP_RETURN_IF_ERROR(CheckNames(layout, run, step));
  TP_RETURN_IF_ERROR(CheckPlacements(*step.attempt));
  LaunchSpec spec = Frame(layout, run, step);
  const Env attempt_env = AttemptEnv(spec, step);
  if (const size_t bytes = attempt_env.at("TP_POOLS").size() + sizeof("TP_POOLS="); bytes > kMaxVariableBytes + 1) {
    return Internal("TP_POOLS comes to {} bytes, and the kernel takes at most {}: ask for fewer nodes", bytes,
                    kMaxVariableBytes);
  }
  for (size_t pool = 0; pool < step.attempt->shape.pools.size(); ++pool) {
    TP_RETURN_IF_ERROR(AddPool(spec, step, attempt_env, pool));
  }
  return spec;
}

}  // namespace tp::core
