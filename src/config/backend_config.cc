#include "config/backend_config.h"

#include <map>
#include <optional>

#include "base/duration.h"
#include "base/status.h"
#include "config/scalar_types.h"
#include "core/resource.h"
#include "decode/json_type.h"

namespace tp::config {
namespace {

using decode::AsJson;
using decode::Boolean;
using decode::Choice;
using decode::Integer;
using decode::JsonField;
using decode::JsonKey;
using decode::JsonListOf;
using decode::JsonObject;
using decode::JsonRecord;
using decode::JsonTextMap;
using decode::Text;
using decode::Type;
using Json = nlohmann::json;
using Fields = std::vector<JsonField>;

Type<Json> JsonText(const std::string& words) { return AsJson(Text(words)); }

Type<Json> StorageType(const std::string& backend, std::string place, std::string sentence) {
  return JsonRecord(fmt::format("storage of {}", backend),
                    {JsonKey(std::move(place), JsonText("text"), std::move(sentence)),
                     JsonKey("tpd_path", AsJson(AbsolutePath()), "Where tpd sees the same files.")});
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

std::optional<std::string> WrongVolume(const std::string& volume) {
  const std::string plain = volume.ends_with(":ro") ? volume.substr(0, volume.size() - 3) : volume;
  const size_t colon = plain.find(':');
  const bool good = colon != std::string::npos && colon > 0 && plain.find(':', colon + 1) == std::string::npos &&
                    plain.compare(colon + 1, 1, "/") == 0;
  return good ? std::nullopt : std::optional<std::string>("not SOURCE:/TARGET or SOURCE:/TARGET:ro");
}

std::optional<std::string> WrongDuration(const std::string& text) {
  const absl::StatusOr<absl::Duration> duration = ParseDuration(text);
  if (!duration.ok()) return std::string(Message(duration.status()));
  return *duration > absl::ZeroDuration() ? std::nullopt : std::optional<std::string>("not a length of time");
}

Fields DockerFields() {
  const Type<Json> volume = AsJson(Text("volume", WrongVolume, "^[^:]+:/[^:]*(:ro)?$"));
  const Type<Json> limit = AsJson(Text("duration", WrongDuration, "^[0-9.]+[a-z]+"));
  return {
      JsonKey("storage", StorageType("docker", "volume_name", "Named volume. Default: storage.root itself."),
              "Where runs are; the containers see it at the path of storage.root."),
      JsonKey("image", JsonText("image"), "For jobs that name none."),
      JsonKey("network", JsonText("network"),
              "bridge, host, none, or a network's name. Default: bridge, and for several ranks one of the job's own."),
      JsonKey("user", JsonText("user"), "UID:GID of the jobs. Default: tpd's."),
      JsonKey("volumes", JsonListOf(volume, "list of volumes"), "SOURCE:/TARGET[:ro], in every container."),
      JsonKey("image_pull_deadline", limit, "How long an image may take to arrive, as `30m`."),
      RunAs()};
}

Type<Json> MakeBackendConfigType(const std::string& backend) {
  const std::string name = fmt::format("config of {}", backend);
  if (backend == "kubernetes_job" || backend == "ray_job") return JsonRecord(name, KubernetesFields());
  if (backend == "volcano_job") return JsonRecord(name, VolcanoFields());
  if (backend == "slurm") return JsonRecord(name, SlurmFields());
  if (backend == "docker") {
    return JsonRecord(name, DockerFields());
  }
  if (backend == "node") {
    return JsonRecord(
        name, {JsonKey("storage", StorageType("node", "path", "Absolute path on the machines."), "Where runs are."),
               RunAs()});
  }
  const auto service = Choice<std::string>({{"service", "service"}});
  return JsonRecord(name, {JsonKey("run_as", AsJson(service), "Under which uid jobs run: always tpd's own.")});
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

const Type<Json>& ExecutorDefaultsType() {
  static const Type<Json> type = [] {
    Fields fields;
    for (const core::BackendTraits& traits : core::kBackends) {
      const std::string name(traits.name);
      fields.push_back(JsonKey(name, BackendConfigType(name), fmt::format("What executors on {} start from.", name)));
    }
    return JsonRecord("executor_defaults", std::move(fields));
  }();
  return type;
}

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  names.reserve(core::kBackends.size());
  for (const core::BackendTraits& backend : core::kBackends) names.emplace_back(backend.name);
  return names;
}

}  // namespace tp::config
