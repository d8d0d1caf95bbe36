#include "config/executors.h"

#include <array>

#include <nlohmann/json.hpp>

#include "config/json_type.h"
#include "core/resource.h"

namespace tp::config {
namespace {

using Json = nlohmann::json;
using Fields = std::vector<JsonField>;

Type<Json> JsonText(const std::string& words) { return AsJson(Text(words)); }

// What executors of several pools of a job agree on (DESIGN 3).
constexpr std::array<std::string_view, 5> kSharedKeys = {"namespace", "storage", "queue", "account", "launcher"};

// --- The backends' keys ---------------------------------------------------------------------------

Type<Json> StorageType(const std::string& backend, std::string place, std::string sentence) {
  return JsonRecord(fmt::format("storage of {}", backend),
                    {JsonKey(std::move(place), JsonText("text"), std::move(sentence)),
                     JsonKey("tpd_path", JsonText("absolute path"), "Where tpd sees the same files.")});
}

Type<Json> MetadataType() {
  return JsonRecord("metadata of kubernetes objects",
                    {JsonKey("labels", JsonTextMap("mapping of text"), "Labels."),
                     JsonKey("annotations", JsonTextMap("mapping of text"), "Annotations.")});
}

JsonField RunAs() {
  const auto who = Choice<std::string>({{"service", "service"}, {"owner", "owner"}});
  return JsonKey("run_as", AsJson(who), "Under which uid jobs run.");
}

// For engines that place jobs themselves.
JsonField Capacity() {
  const auto who = Choice<std::string>({{"managed", "managed"}});
  return JsonKey("capacity", AsJson(who), "managed: tpd allocates the cards of the listed nodes.");
}

Fields MakeKubernetesFields() {
  const Type<Json> metadata = MetadataType();
  return {JsonKey("namespace", JsonText("text"), "Namespace of the objects."),
          JsonKey("storage", StorageType("kubernetes", "pvc_name", "Persistent volume claim."), "Where runs are."),
          JsonKey("job_metadata", metadata, "Of the job objects."),
          JsonKey("pod_metadata", metadata, "Of their pods."),
          JsonKey("node_selector", JsonTextMap("mapping of text"), "Labels that nodes have."),
          JsonKey("tolerations", JsonListOf(JsonObject("a mapping"), "list of mappings"), "As in a pod."),
          JsonKey("affinity", JsonObject("mapping"), "As in a pod."),
          JsonKey("queue", JsonText("text"), "Queue of the scheduler."),
          Capacity(),
          RunAs()};
}

const Fields& KubernetesFields() {
  static const Fields fields = MakeKubernetesFields();
  return fields;
}

Fields VolcanoFields() {
  Fields fields = KubernetesFields();
  fields.push_back(JsonKey("scheduler_name", JsonText("text"), "Scheduler of the pods."));
  fields.push_back(JsonKey("plugins", JsonObject("mapping of plugin to its arguments"), "Volcano job plugins."));
  fields.push_back(JsonKey("max_retry", AsJson(Integer(0, 0)), "Volcano's own retries: none, tpd retries."));
  fields.push_back(
      JsonKey("enable_multi_node_networking", AsJson(Boolean()), "Annotations for multi-node networking."));
  return fields;
}

Fields SlurmFields() {
  return {JsonKey("storage", StorageType("slurm", "path", "Absolute path on the nodes."), "Where runs are."),
          JsonKey("queue", JsonText("text"), "Partition (sbatch --partition)."),
          JsonKey("account", JsonText("text"), "Account (sbatch --account)."), Capacity(), RunAs()};
}

Type<Json> MakeBackendConfigType(const std::string& backend) {
  const std::string name = fmt::format("config of {}", backend);
  if (backend == "kubernetes_job" || backend == "ray_job") return JsonRecord(name, KubernetesFields());
  if (backend == "volcano_job") return JsonRecord(name, VolcanoFields());
  if (backend == "slurm") return JsonRecord(name, SlurmFields());
  if (backend == "docker") {
    return JsonRecord(
        name, {JsonKey("storage", StorageType("docker", "volume_name", "Named volume."), "Where runs are."), RunAs()});
  }
  if (backend == "node") {
    return JsonRecord(
        name, {JsonKey("storage", StorageType("node", "path", "Absolute path on the machines."), "Where runs are."),
               RunAs()});
  }
  return JsonRecord(name, {RunAs()});
}

// --- Executors ------------------------------------------------------------------------------------

std::map<std::string, Json> DefaultsByBackend(const ServerFile::Jobs& jobs, Problems& problems) {
  std::map<std::string, Json> defaults;
  for (const auto& entry : jobs.executor_defaults) {
    Json config;
    if (BackendConfigType(entry.key).decode(entry.value, problems, config)) defaults[entry.key] = std::move(config);
  }
  return defaults;
}

core::Executor MakeExecutor(const std::string& provider, const std::string& profile, const std::string& backend,
                            const std::map<std::string, Json>& defaults, const Json& own) {
  Json base = Json::object();
  if (const auto found = defaults.find(backend); found != defaults.end()) base = found->second;
  const Json config = DeepMerge(std::move(base), own);
  core::Executor executor;
  executor.name = fmt::format("{}/{}", provider, profile);
  executor.provider = provider;
  executor.profile = profile;
  executor.backend = backend;
  executor.config_json = config.dump();
  for (const std::string_view key : kSharedKeys) {
    if (const auto value = config.find(std::string(key)); value != config.end()) {
      executor.shared[std::string(key)] = value->dump();
    }
  }
  return executor;
}

}  // namespace

const Type<Json>& BackendConfigType(const std::string& backend) {
  static const std::map<std::string, Type<Json>> types = [] {
    std::map<std::string, Type<Json>> all;
    for (const core::BackendTraits& traits : core::kBackends) {
      all[std::string(traits.name)] = MakeBackendConfigType(std::string(traits.name));
    }
    return all;
  }();
  return types.at(backend);
}

std::map<std::string, core::Executor> BuildExecutors(const ServerFile& file, const std::string& default_backend,
                                                     Problems& problems) {
  const std::map<std::string, Json> defaults = DefaultsByBackend(file.jobs, problems);
  std::map<std::string, core::Executor> executors;
  for (const Located<ExecutorEntry>& located : file.jobs.executors) {
    const ExecutorEntry& entry = located.value;
    Json own = Json::object();
    if (entry.config) BackendConfigType(entry.backend).decode(*entry.config, problems, own);
    core::Executor executor = MakeExecutor(entry.provider, entry.profile, entry.backend, defaults, own);
    const std::string name = executor.name;
    if (!executors.emplace(name, std::move(executor)).second) {
      problems.Add(located.at, fmt::format("executor {} is here twice", name));
    }
  }
  for (const char* provider : {"cpu", "gpu"}) {
    core::Executor executor = MakeExecutor(provider, "default", default_backend, defaults, Json::object());
    const std::string name = executor.name;
    executors.emplace(name, std::move(executor));
  }
  return executors;
}

}  // namespace tp::config
