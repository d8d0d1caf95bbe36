#include "core/resource.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "base/near_miss.h"
#include "base/printable.h"
#include "base/status.h"

namespace tp::core {
namespace {

constexpr std::string_view kGrammar = "[role[,role...]=]profile[:total]";
constexpr size_t kMaxPools = 16;
constexpr size_t kMaxRole = 32;
// Far above any cluster; keeps sums of nodes and cards far from overflow.
constexpr int64_t kMaxNodes = 100'000;

// --- The flag as typed ----------------------------------------------------------------------------

struct Flag {
  std::string text;  // as sentences show it
  std::vector<std::string> roles;
  std::string profile;
  std::optional<int64_t> total;
};

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string FlagText(std::string_view typed) {
  constexpr size_t kLongest = 80;
  const bool as_typed = !typed.empty() && typed.size() <= kLongest && IsPlain(typed);
  return fmt::format("--profile {}", as_typed ? std::string(typed) : Quoted(typed));
}

bool IsRole(std::string_view role) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_rest = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  return !role.empty() && role.size() <= kMaxRole && is_letter(role[0]) &&
         std::all_of(role.begin(), role.end(), is_rest);
}

absl::StatusOr<std::vector<std::string>> ParseRoles(const Flag& flag, std::string_view text) {
  std::vector<std::string> roles;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view role = text.substr(0, comma);
    if (!IsRole(role)) {
      return InvalidArgument("{}: {} is not a role: write a lower-case letter and up to {} of [a-z0-9_-]", flag.text,
                             Quoted(role), kMaxRole - 1);
    }
    roles.emplace_back(role);
    if (comma == std::string_view::npos) return roles;
    text.remove_prefix(comma + 1);
  }
}

absl::StatusOr<int64_t> ParseTotal(const Flag& flag, std::string_view text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits) {
    return InvalidArgument("{}: the total {} is not a whole number from 1 up", flag.text, Quoted(text));
  }
  int64_t total = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), total);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return InvalidArgument("{}: the total is far too large", flag.text);
  }
  if (total == 0) return InvalidArgument("{}: the total must be at least 1", flag.text);
  return total;
}

absl::StatusOr<Flag> ParseFlag(std::string_view typed) {
  Flag flag;
  flag.text = FlagText(typed);
  std::string_view rest = typed;
  if (const size_t equals = rest.find('='); equals != std::string_view::npos) {
    TP_ASSIGN_OR_RETURN(flag.roles, ParseRoles(flag, rest.substr(0, equals)));
    rest.remove_prefix(equals + 1);
  }
  const size_t colon = rest.find(':');
  flag.profile = std::string(rest.substr(0, colon));
  if (flag.profile.empty()) {
    return InvalidArgument("{}: names no profile; the form is {}", flag.text, kGrammar);
  }
  if (colon != std::string_view::npos) {
    TP_ASSIGN_OR_RETURN(flag.total, ParseTotal(flag, rest.substr(colon + 1)));
  }
  return flag;
}

absl::Status CheckRoles(const std::vector<Flag>& flags) {
  std::set<std::string> seen;
  for (const Flag& flag : flags) {
    if (flags.size() > 1 && flag.roles.empty()) {
      return InvalidArgument("{}: with several --profile each needs a role in front, such as train={}", flag.text,
                             FlagText(flag.profile).substr(std::string_view("--profile ").size()));
    }
    for (const std::string& role : flag.roles) {
      if (!seen.insert(role).second) return InvalidArgument("{}: role {} is given twice", flag.text, role);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Flag>> ParseFlags(const std::vector<std::string>& profile_flags) {
  if (profile_flags.size() > kMaxPools) {
    return InvalidArgument("--profile is given {} times; a job has at most {} pools", profile_flags.size(), kMaxPools);
  }
  std::vector<Flag> flags;
  for (const std::string& typed : profile_flags) {
    TP_ASSIGN_OR_RETURN(Flag flag, ParseFlag(typed));
    flags.push_back(std::move(flag));
  }
  TP_RETURN_IF_ERROR(CheckRoles(flags));
  if (flags.empty()) {
    Flag flag;
    flag.text = "without --profile";
    flag.profile = kDefaultProfile;
    flags.push_back(std::move(flag));
  }
  return flags;
}

// --- One pool -------------------------------------------------------------------------------------

// A flag with what it names in the registry.
struct Pool {
  Flag flag;
  const Profile* profile = nullptr;
  const Series* series = nullptr;
  int64_t total = 0;
  PoolShape shape;
};

std::string ListNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  const std::vector<std::string> shown(names.begin(), names.begin() + kShown);
  return fmt::format("{} and {} more", fmt::join(shown, ", "), names.size() - kShown);
}

absl::Status UnknownProfile(const Registry& registry, const Flag& flag) {
  std::vector<std::string> names;
  std::vector<std::string> of_series;
  for (const auto& [name, profile] : registry.profiles) {
    names.push_back(name);
    if (profile.series == flag.profile) of_series.push_back(name);
  }
  if (names.empty()) return FailedPrecondition("{}: this deployment has no profiles; ask its admin", flag.text);
  std::string hint;
  if (!of_series.empty()) {
    hint = fmt::format("that is a series, and its profiles are {}; ", ListNames(of_series));
  } else if (const auto near = NearMiss(flag.profile, names)) {
    hint = fmt::format("did you mean {}? ", *near);
  }
  return InvalidArgument("{}: there is no profile {}; {}there are {}", flag.text, Quoted(flag.profile), hint,
                         ListNames(names));
}

std::string SizeOf(const Series& series) {
  const auto nodes = static_cast<int64_t>(series.nodes.size());
  const std::string_view plural = nodes == 1 ? "" : "s";
  if (series.gpus_per_node == 0) return fmt::format("{} node{}", nodes, plural);
  return fmt::format("{} node{} x {} = {} cards", nodes, plural, series.gpus_per_node, nodes * series.gpus_per_node);
}

// Totals are compared by division: no product or sum of what a user typed can overflow.
absl::Status CheckTotal(const Pool& pool) {
  const Series& series = *pool.series;
  const int64_t cards = std::max(series.gpus_per_node, 1);
  const auto listed = static_cast<int64_t>(series.nodes.size());
  if (pool.total < 1) return FailedPrecondition("profile {}: its default shape is {}", pool.profile->name, pool.total);
  const int64_t whole_nodes = pool.total / cards;
  const bool broken_node = pool.total % cards != 0;
  const bool too_large = whole_nodes > listed || (whole_nodes == listed && broken_node);
  if (listed > 0 && too_large) {
    return InvalidArgument("{}: series {} has only {}", pool.flag.text, series.name, SizeOf(series));
  }
  if (whole_nodes >= kMaxNodes) return InvalidArgument("{}: a pool has at most {} nodes", pool.flag.text, kMaxNodes);
  if (whole_nodes > 0 && broken_node) {
    return InvalidArgument("{}: series {} has {} cards a node, and above that a total is a multiple of it: {} or {}",
                           pool.flag.text, series.name, cards, whole_nodes * cards, (whole_nodes + 1) * cards);
  }
  return absl::OkStatus();
}

void FillSize(Pool& pool) {
  const int cards = pool.series->gpus_per_node;
  if (cards == 0) {
    pool.shape.nodes = pool.total;
  } else if (pool.total <= cards) {
    pool.shape.nodes = 1;
    pool.shape.gpus_per_node = static_cast<int>(pool.total);
  } else {
    pool.shape.nodes = pool.total / cards;
    pool.shape.gpus_per_node = cards;
  }
}

void FillDemand(Pool& pool) {
  const Series& series = *pool.series;
  const int shares = std::max(pool.shape.gpus_per_node, 1);
  const auto scale = [shares](auto& amount) {
    if (amount && *amount != kUnlimited) *amount *= shares;
  };
  NodeDemand& demand = pool.shape.demand;
  demand.limits = series.per_card;
  scale(demand.limits.cpus);
  scale(demand.limits.memory_bytes);
  scale(demand.limits.shm_bytes);
  scale(demand.limits.memlock_bytes);
  demand.virtual_cards = series.virtual_cards;
  demand.constraint = series.constraint;
  demand.node_selector = series.node_selector;
}

void FillEnvironment(Pool& pool, std::vector<std::string>& notes) {
  const auto entry = pool.profile->shapes.find(pool.total);
  const bool found = entry != pool.profile->shapes.end();
  const ShapeOverrides& chosen = found ? entry->second : pool.profile->base;
  if (!found && !pool.profile->shapes.empty()) {
    notes.push_back(fmt::format("profile {} has no entry for a total of {}: its base overrides apply",
                                pool.profile->name, pool.total));
  }
  pool.shape.env = chosen.env;
  pool.shape.env.insert(pool.series->env.begin(), pool.series->env.end());
  pool.shape.locked_env = pool.series->locked_env;
  for (const auto& [framework, override] : chosen.overrides) {
    pool.shape.overrides_json[framework] = override.json;
    pool.shape.overrides_env[OverridesVariable(framework)] = override.text;
  }
}

absl::StatusOr<Pool> ResolvePool(const Registry& registry, Flag flag, std::vector<std::string>& notes) {
  const auto profile = registry.profiles.find(flag.profile);
  if (profile == registry.profiles.end()) return UnknownProfile(registry, flag);
  const auto series = registry.series.find(profile->second.series);
  if (series == registry.series.end()) {
    return FailedPrecondition("{}: profile {} names series {}, which does not exist; an admin mends registry.yaml",
                              flag.text, profile->first, Quoted(profile->second.series));
  }
  Pool pool;
  pool.flag = std::move(flag);
  pool.profile = &profile->second;
  pool.series = &series->second;
  pool.total = pool.flag.total.value_or(pool.profile->default_total);
  TP_RETURN_IF_ERROR(CheckTotal(pool));
  pool.shape.roles = pool.flag.roles;
  pool.shape.series = pool.series->name;
  pool.shape.profile = pool.profile->name;
  FillSize(pool);
  FillEnvironment(pool, notes);
  FillDemand(pool);
  return pool;
}

// --- Pools together -------------------------------------------------------------------------------

absl::Status CheckWholeNodes(const std::vector<Pool>& pools) {
  for (const Pool& pool : pools) {
    const int cards = pool.series->gpus_per_node;
    if (pool.shape.gpus_per_node != cards) {
      return InvalidArgument(
          "{}: with several pools each takes whole nodes, and series {} has {} cards a node: {} or {}", pool.flag.text,
          pool.series->name, cards, cards, 2 * cards);
    }
    const int first_cards = pools.front().shape.gpus_per_node;
    if (cards != first_cards) {
      return InvalidArgument("{} has {} cards a node and {} has {}: all pools of a job need the same", pool.flag.text,
                             cards, pools.front().flag.text, first_cards);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSeriesSums(const std::vector<Pool>& pools) {
  std::map<std::string, int64_t> nodes;
  for (const Pool& pool : pools) {
    const int64_t asked = nodes[pool.series->name] += pool.shape.nodes;
    if (!pool.series->nodes.empty() && asked > static_cast<int64_t>(pool.series->nodes.size())) {
      return InvalidArgument("{}: together the pools ask for {} nodes of series {}, which has only {}", pool.flag.text,
                             asked, pool.series->name, SizeOf(*pool.series));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const Executor*> ExecutorOf(const Registry& registry, const Pool& pool, bool distributed) {
  const Series& series = *pool.series;
  const std::string& name =
      distributed && !series.executor_distributed.empty() ? series.executor_distributed : series.executor;
  const auto found = registry.executors.find(name);
  if (found != registry.executors.end()) return &found->second;
  return FailedPrecondition("{}: series {} names executor {}, which does not exist; an admin mends registry.yaml",
                            pool.flag.text, series.name, Quoted(name));
}

std::string SeveralPoolBackends() {
  std::vector<std::string_view> names;
  for (const BackendTraits& backend : kBackends) {
    if (backend.several_pools) names.push_back(backend.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

absl::Status CheckBackend(const Pool& pool, const Executor& executor, size_t pool_count) {
  const BackendTraits* backend = FindBackend(executor.backend);
  if (backend == nullptr) {
    return FailedPrecondition("{}: executor {} names backend {}, which does not exist; an admin mends tpd.yaml",
                              pool.flag.text, executor.name, Quoted(executor.backend));
  }
  if (pool_count > 1 && !backend->several_pools) {
    return InvalidArgument("{} runs on backend {}, which takes one pool a job; several pools need one of {}",
                           pool.flag.text, backend->name, SeveralPoolBackends());
  }
  if (backend->max_nodes > 0 && pool.shape.nodes > backend->max_nodes) {
    return InvalidArgument("{}: {} nodes, and backend {} takes at most {}", pool.flag.text, pool.shape.nodes,
                           backend->name, backend->max_nodes);
  }
  if (backend->needs_constraint && pool.series->constraint.empty()) {
    return FailedPrecondition(
        "{}: series {} has no `constraint`, and backend {} needs one; an admin sets it in registry.yaml",
        pool.flag.text, pool.series->name, backend->name);
  }
  return absl::OkStatus();
}

// The first key in which the executors differ.
std::optional<std::string> Disagreement(const Executor& a, const Executor& b) {
  if (a.backend != b.backend) return "backend";
  for (const auto& [key, value] : a.shared) {
    const auto other = b.shared.find(key);
    if (other == b.shared.end() || other->second != value) return key;
  }
  for (const auto& [key, value] : b.shared) {
    if (!a.shared.contains(key)) return key;
  }
  return std::nullopt;
}

// The executor of the first pool; the others agree with it.
absl::StatusOr<const Executor*> ChooseExecutor(const Registry& registry, const std::vector<Pool>& pools) {
  const bool distributed = pools.size() > 1 || pools.front().shape.nodes > 1;
  const Executor* chosen = nullptr;
  for (const Pool& pool : pools) {
    TP_ASSIGN_OR_RETURN(const Executor* executor, ExecutorOf(registry, pool, distributed));
    TP_RETURN_IF_ERROR(CheckBackend(pool, *executor, pools.size()));
    if (chosen == nullptr) chosen = executor;
    if (const auto key = Disagreement(*chosen, *executor)) {
      return InvalidArgument(
          "{} runs on executor {} and {} on {}, which differ in `{}`: pools of one job need the same", pool.flag.text,
          executor->name, pools.front().flag.text, chosen->name, *key);
    }
  }
  return chosen;
}

}  // namespace

const BackendTraits* FindBackend(std::string_view name) {
  const auto* found = std::find_if(kBackends.begin(), kBackends.end(),
                                   [&](const BackendTraits& backend) { return backend.name == name; });
  return found == kBackends.end() ? nullptr : found;
}

absl::StatusOr<ResolvedShape> ResolveShape(const Registry& registry, const std::vector<std::string>& profile_flags) {
  TP_ASSIGN_OR_RETURN(std::vector<Flag> flags, ParseFlags(profile_flags));
  ResolvedShape shape;
  std::vector<Pool> pools;
  for (Flag& flag : flags) {
    TP_ASSIGN_OR_RETURN(Pool pool, ResolvePool(registry, std::move(flag), shape.notes));
    pools.push_back(std::move(pool));
  }
  if (pools.size() > 1) {
    TP_RETURN_IF_ERROR(CheckWholeNodes(pools));
    TP_RETURN_IF_ERROR(CheckSeriesSums(pools));
  }
  TP_ASSIGN_OR_RETURN(const Executor* executor, ChooseExecutor(registry, pools));
  shape.executor = executor->name;
  shape.executor_config = executor->config_json;
  shape.backend = executor->backend;
  for (Pool& pool : pools) shape.pools.push_back(std::move(pool.shape));
  return shape;
}

std::string DescribeShape(const ResolvedShape& shape) {
  std::vector<std::string> lines;
  for (const PoolShape& pool : shape.pools) {
    const std::string roles = pool.roles.empty() ? "" : fmt::format("{}=", fmt::join(pool.roles, ","));
    const int64_t total = pool.gpus_per_node == 0 ? pool.nodes : pool.cards();
    const std::string size = pool.gpus_per_node == 0 ? "" : fmt::format(" x {}", pool.gpus_per_node);
    lines.push_back(
        fmt::format("{}{}:{} = {} node{}{}", roles, pool.profile, total, pool.nodes, pool.nodes == 1 ? "" : "s", size));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string OverridesVariable(std::string_view framework) {
  std::string name = "TP_OVERRIDES_";
  for (const char c : framework) {
    if (c >= 'a' && c <= 'z') {
      name += static_cast<char>(c - 'a' + 'A');
    } else {
      name += (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ? c : '_';
    }
  }
  return name;
}

}  // namespace tp::core
