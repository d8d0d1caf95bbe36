#include <set>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "config/keys_of.h"
#include "config/override_text.h"
#include "config/registry_file.h"
#include "core/resource.h"
#include "decode/json_type.h"

namespace tp::config {
namespace {

using decode::Entry;
using decode::Located;
using decode::Position;
using decode::Problems;
using Json = nlohmann::json;

std::map<std::string, std::string> ToMap(const EnvEntries& entries) {
  std::map<std::string, std::string> map;
  for (const auto& entry : entries) map[entry.key] = entry.value;
  return map;
}

// `layer` over `base`.
std::map<std::string, std::string> MergedEnv(std::map<std::string, std::string> base, const EnvEntries& layer) {
  for (const auto& entry : layer) base[entry.key] = entry.value;
  return base;
}

class RegistryBuilder {
 public:
  RegistryBuilder(const RegistryFile& file, std::map<std::string, core::Executor> executors, Problems& problems)
      : file_(file), problems_(problems) {
    registry_.executors = std::move(executors);
  }

  core::Registry Build() {
    AddFrameworks();
    for (const auto& entry : file_.series) AddSeries(entry);
    for (const auto& entry : file_.profiles) AddProfile(entry);
    AddDefaultProfile();
    for (const auto& entry : file_.series) CheckWindowProfiles(entry);
    for (const auto& entry : file_.profiles) CheckShapes(entry);
    for (const auto& entry : file_.recipes) AddRecipe(entry);
    return std::move(registry_);
  }

 private:
  // --- Frameworks ---------------------------------------------------------------------------------

  void AddFrameworks() {
    std::map<std::string, std::string> variables;
    for (const auto& entry : file_.frameworks) {
      registry_.frameworks[entry.key] = entry.value;
      const std::string variable = core::OverridesVariable(entry.key);
      const auto [first, added] = variables.try_emplace(variable, entry.key);
      if (added || first->second == entry.key) continue;
      problems_.Add(entry.at, fmt::format("frameworks {} and {} would share the variable {}; rename one", first->second,
                                          entry.key, variable));
    }
  }

  // --- Series -------------------------------------------------------------------------------------

  void AddSeries(const Entry<std::string, SeriesEntry>& entry) {
    core::Series series;
    series.name = entry.key;
    series.description = entry.value.description;
    series.gpus_per_node = entry.value.gpus_per_node;
    series.virtual_cards = entry.value.virtual_cards;
    series.env = ToMap(entry.value.env);
    series.locked_env = ToMap(entry.value.locked_env);
    series.per_card = entry.value.per_card.value;
    CheckPerCard(entry.value.per_card);
    series.constraint = entry.value.constraint;
    series.node_selector = ToMap(entry.value.node_selector);
    AddNodes(entry.value, series);
    for (const WindowEntry& window : entry.value.windows) AddWindow(window, series);
    const std::string_view fallback = series.gpus_per_node == 0 ? core::kDefaultCpuExecutor : core::kDefaultGpuExecutor;
    series.executor = entry.value.executor ? entry.value.executor->value : std::string(fallback);
    if (entry.value.executor_distributed) series.executor_distributed = entry.value.executor_distributed->value;
    CheckExecutor(entry.value.executor, series);
    CheckExecutor(entry.value.executor_distributed, series);
    CheckHasNodes(entry.at, series);
    registry_.series[series.name] = std::move(series);
  }

  void AddNodes(const SeriesEntry& entry, core::Series& series) {
    std::set<std::string> names;
    for (const NodeEntry& node_entry : entry.nodes) {
      const std::string& name = node_entry.name.value;
      if (!names.insert(name).second) {
        problems_.Add(node_entry.name.at, fmt::format("node {} is here twice", name));
        continue;
      }
      core::Node node{.name = name, .address = node_entry.address.empty() ? name : node_entry.address};
      CheckNodeElsewhere(node_entry.name.at, node, series);
      series.nodes.push_back(std::move(node));
    }
  }

  void CheckPerCard(const Located<RankLimits>& share) {
    if (!share.value.memory_bytes || share.value.shm_bytes.value_or(0) <= *share.value.memory_bytes) return;
    problems_.Add(share.at, "shm is a part of memory and cannot be larger");
  }

  static void AddWindow(const WindowEntry& entry, core::Series& series) {
    core::Window window;
    for (const Located<std::string>& profile : entry.profiles) window.profiles.push_back(profile.value);
    window.zone = entry.timezone;
    window.open = entry.open;
    window.grace = entry.grace;
    window.min_remaining = entry.min_remaining;
    series.windows.push_back(std::move(window));
  }

  // A node of several series is one machine: one address, one number of cards.
  void CheckNodeElsewhere(Position at, const core::Node& node, const core::Series& series) {
    for (const auto& [name, other] : registry_.series) {
      for (const core::Node& same : other.nodes) {
        if (same.name != node.name) continue;
        if (same.address != node.address) {
          problems_.Add(at, fmt::format("node {} has the address {} here and {} in series {}", node.name, node.address,
                                        same.address, name));
        }
        const bool both_have_cards = series.gpus_per_node > 0 && other.gpus_per_node > 0;
        if (both_have_cards && series.gpus_per_node != other.gpus_per_node) {
          problems_.Add(at, fmt::format("node {} has {} cards here and {} in series {}", node.name,
                                        series.gpus_per_node, other.gpus_per_node, name));
        }
      }
    }
  }

  void CheckExecutor(const std::optional<Located<std::string>>& reference, const core::Series& series) {
    if (!reference) return;
    const auto found = registry_.executors.find(reference->value);
    if (found == registry_.executors.end()) {
      decode::AddUnknown(reference->at, "executor", reference->value, "", KeysOf(registry_.executors), problems_);
    } else if (series.gpus_per_node > 0 && found->second.provider == "cpu") {
      problems_.Add(reference->at,
                    fmt::format("executor {} is for cpu jobs, and series {} has cards", reference->value, series.name));
    }
  }

  void CheckHasNodes(Position at, const core::Series& series) {
    const auto executor = registry_.executors.find(series.executor);
    if (executor == registry_.executors.end() || !series.nodes.empty()) return;
    const core::BackendTraits* backend = core::FindBackend(executor->second.backend);
    if (backend == nullptr || !backend->lists_nodes) return;
    problems_.Add(at, fmt::format("series {} runs on backend {}, which needs its `nodes`", series.name, backend->name));
  }

  void CheckWindowProfiles(const Entry<std::string, SeriesEntry>& entry) {
    for (const WindowEntry& window : entry.value.windows) {
      for (const Located<std::string>& name : window.profiles) {
        const auto profile = registry_.profiles.find(name.value);
        if (profile == registry_.profiles.end()) {
          decode::AddUnknown(name.at, "profile", name.value, "", KeysOf(registry_.profiles), problems_);
        } else if (profile->second.series != entry.key) {
          problems_.Add(name.at, fmt::format("profile {} is one of series {}, not of {}", name.value,
                                             profile->second.series, entry.key));
        }
      }
    }
  }

  // --- Profiles -----------------------------------------------------------------------------------

  using JsonByFramework = std::map<std::string, Json>;

  void AddProfile(const Entry<std::string, ProfileEntry>& entry) {
    core::Profile profile;
    profile.name = entry.key;
    profile.series = entry.value.series.value;
    profile.description = entry.value.description;
    profile.default_total = entry.value.default_shape.value;
    CheckSeriesOf(entry);
    CheckLocked(profile.series, entry.value.env);
    const JsonByFramework base = DecodeOverrides(entry.value.overrides, {});
    profile.base = {.env = ToMap(entry.value.env), .overrides = Rendered(entry.value.overrides, base)};
    for (const auto& shape : entry.value.shapes) {
      CheckLocked(profile.series, shape.value.env);
      const JsonByFramework merged = DecodeOverrides(shape.value.overrides, base);
      profile.shapes[shape.key] = {.env = MergedEnv(profile.base.env, shape.value.env),
                                   .overrides = Rendered(shape.value.overrides, merged)};
    }
    registry_.profiles[profile.name] = std::move(profile);
  }

  void CheckSeriesOf(const Entry<std::string, ProfileEntry>& entry) {
    const Located<std::string>& reference = entry.value.series;
    const auto series = registry_.series.find(reference.value);
    if (series == registry_.series.end()) {
      decode::AddUnknown(reference.at, "series", reference.value, "", KeysOf(registry_.series), problems_);
    } else if (entry.key == core::kDefaultProfile && series->second.gpus_per_node > 0) {
      problems_.Add(reference.at, fmt::format("profile {} is what jobs without --profile get: its series has no cards, "
                                              "and {} has {} a node",
                                              entry.key, reference.value, series->second.gpus_per_node));
    }
  }

  void CheckLocked(const std::string& series_name, const EnvEntries& env) {
    const auto series = registry_.series.find(series_name);
    if (series == registry_.series.end()) return;
    for (const auto& entry : env) {
      if (!series->second.locked_env.contains(entry.key)) continue;
      problems_.Add(entry.at, fmt::format("series {} locks {}; a profile cannot set it", series_name, entry.key));
    }
  }

  // The entries as JSON over `base`.
  JsonByFramework DecodeOverrides(const OverrideEntries& entries, const JsonByFramework& base) {
    JsonByFramework overrides = base;
    for (const auto& entry : entries) {
      if (!registry_.frameworks.contains(entry.key)) {
        decode::AddUnknown(entry.at, "framework", entry.key, "", KeysOf(registry_.frameworks), problems_);
        continue;
      }
      Json json;
      if (!decode::JsonObject("overrides").decode(entry.value, problems_, json)) continue;
      Json& merged = overrides[entry.key];
      merged = merged.is_null() ? std::move(json) : decode::DeepMerge(std::move(merged), json);
    }
    return overrides;
  }

  core::FrameworkOverrides Rendered(const OverrideEntries& entries, const JsonByFramework& overrides) {
    core::FrameworkOverrides rendered;
    for (const auto& [framework, json] : overrides) {
      const absl::StatusOr<std::string> text = OverrideText(registry_.frameworks.at(framework), json);
      if (text.ok()) {
        rendered[framework] = {.json = json.dump(), .text = *text};
        continue;
      }
      for (const auto& entry : entries) {
        if (entry.key != framework) continue;
        problems_.Add(entry.at, fmt::format("overrides of {}: {}", framework, Message(text.status())));
      }
    }
    return rendered;
  }

  // Jobs without --profile always have a place to run, where a backend needs nothing said for that.
  void AddDefaultProfile() {
    const std::string name(core::kDefaultProfile);
    if (registry_.profiles.contains(name)) return;
    const auto [series, added] = registry_.series.try_emplace(name);
    if (added) {
      series->second.name = name;
      series->second.description = "Jobs without --profile";
      series->second.executor = core::kDefaultCpuExecutor;
      const core::Executor& executor = registry_.executors.at(series->second.executor);
      const core::BackendTraits* backend = core::FindBackend(executor.backend);
      const bool this_machine = executor.backend == "local" || executor.backend == "docker";
      if (this_machine) series->second.nodes = {{.name = "localhost", .address = "127.0.0.1"}};
      if (backend->lists_nodes && !this_machine) registry_.series.erase(series);
    }
    const auto usable = registry_.series.find(name);
    if (usable == registry_.series.end() || usable->second.gpus_per_node > 0) return;
    core::Profile profile;
    profile.name = name;
    profile.series = name;
    profile.description = "Jobs without --profile";
    registry_.profiles[name] = std::move(profile);
  }

  // --- Shapes -------------------------------------------------------------------------------------

  void CheckShapes(const Entry<std::string, ProfileEntry>& entry) {
    const ProfileEntry& profile = entry.value;
    if (!registry_.series.contains(profile.series.value)) return;
    const bool has_default = profile.default_shape.at != Position{};
    CheckShape(has_default ? profile.default_shape.at : entry.at, entry.key, profile.default_shape.value);
    for (const auto& shape : profile.shapes) CheckShape(shape.at, entry.key, shape.key);
  }

  void CheckShape(Position at, const std::string& profile, int64_t total) {
    const absl::Status status = core::ResolveShape(registry_, {fmt::format("{}:{}", profile, total)}).status();
    // What only an admin of the backend can mend (slurm without a constraint) is told at submission.
    if (!absl::IsInvalidArgument(status)) return;
    problems_.Add(at, fmt::format("this total cannot be: {}", Message(status)));
  }

  // --- Recipes ------------------------------------------------------------------------------------

  void AddRecipe(const Entry<std::string, RecipeEntry>& entry) {
    const RecipeEntry& recipe = entry.value;
    if (recipe.command.empty()) problems_.Add(entry.at, fmt::format("recipe {} has an empty command", entry.key));
    const absl::Status status = core::ResolveShape(registry_, recipe.profiles.value).status();
    if (absl::IsInvalidArgument(status)) {
      problems_.Add(recipe.profiles.value.empty() ? entry.at : recipe.profiles.at, std::string(Message(status)));
    }
    registry_.recipes[entry.key] = {.description = recipe.description,
                                    .argv = recipe.command,
                                    .profiles = recipe.profiles.value,
                                    .image = recipe.image,
                                    .env = ToMap(recipe.env),
                                    .time_limit = recipe.time_limit};
  }

  const RegistryFile& file_;
  Problems& problems_;
  core::Registry registry_;
};

}  // namespace

core::Registry BuildRegistry(const RegistryFile& file, std::map<std::string, core::Executor> executors,
                             Problems& problems) {
  return RegistryBuilder(file, std::move(executors), problems).Build();
}

}  // namespace tp::config
