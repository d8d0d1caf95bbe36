#include "backends/docker/container_request.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include "backends/docker/container.h"
#include "backends/docker/engine_facts.h"
#include "backends/docker/json_access.h"
#include "base/duration.h"
#include "base/secret_names.h"
#include "base/status.h"
#include "base/utf8.h"
#include "launch/rank_plan.h"

namespace tp::docker {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr int64_t kNanosPerCpu = 1'000'000'000;
constexpr std::string_view kVisibleDevices = "CUDA_VISIBLE_DEVICES";
constexpr std::string_view kRuntimeDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kHostNetwork = "host";

bool IsOwnNetwork(const std::string& network) { return network.empty() || network == "bridge"; }

// Whether its containers find each other by aliases.
bool NeedsNames(const LaunchSpec& spec, const ExecutorConfig& config) {
  return spec.ranks.size() > 1 && config.network != kHostNetwork;
}

// A name that other containers can find a rank by.
bool IsName(const std::string& address) {
  return !address.empty() && address != "localhost" && address.find(':') == std::string::npos &&
         address.find_first_not_of("0123456789.") != std::string::npos;
}

bool IsVirtual(const LaunchSpec& spec, int pool) {
  const auto index = static_cast<size_t>(pool);
  return index < spec.demands.size() && spec.demands[index].virtual_cards;
}

bool HasDevices(const LaunchSpec& spec, const RankLaunch& rank) {
  return !rank.placement.cards.empty() && !IsVirtual(spec, rank.pool);
}

std::string Visible(size_t cards) {
  std::string list;
  for (size_t card = 0; card < cards; ++card) list += fmt::format("{}{}", card == 0 ? "" : ",", card);
  return list;
}

bool IsText(std::string_view text) { return !FirstInvalidUtf8(text).has_value(); }

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

bool HasTextWords(const LaunchSpec& spec) { return std::all_of(spec.argv.begin(), spec.argv.end(), IsText); }

// What is so on the node and otherwise in its container: the cards' numbers, and the address by which the one
// container of a job reaches itself.
std::string ValueInside(const std::string& name, const std::string& value, const LaunchSpec& spec,
                        const RankLaunch& rank, const ExecutorConfig& config) {
  if (name == kVisibleDevices && HasDevices(spec, rank)) return Visible(rank.placement.cards.size());
  const bool alone = spec.ranks.size() == 1 && config.network != kHostNetwork;
  return alone && (name == "MASTER_ADDR" || name == "PET_MASTER_ADDR" || name == "TP_HEAD_ADDR") ? "127.0.0.1" : value;
}

// What is no text goes as hex (docs/launch-contract.md).
Ordered EnvOf(const LaunchSpec& spec, const RankLaunch& rank, const ExecutorConfig& config, const Site& site) {
  Ordered env = Ordered::array();
  if (!HasTextWords(spec)) env.push_back("TP_RANK_HEX_ARGV=1");
  // Where it is the engine's default, the runtime of the cards would add to a container all that this names.
  const bool by_runtime = HasDevices(spec, rank) && site.cards_by == CardsBy::kNvidiaRuntime;
  if (!by_runtime) env.push_back(fmt::format("{}=void", kRuntimeDevices));
  for (const auto& [name, value] : rank.env) {
    if (name == kRuntimeDevices) continue;
    if (!IsText(value)) {
      env.push_back(fmt::format("TP_RANK_HEX_{}={}", name, Hex(value)));
    } else {
      env.push_back(fmt::format("{}={}", name, ValueInside(name, value, spec, rank, config)));
    }
  }
  return env;
}

Ordered LabelsOf(const LaunchSpec& spec, const RankLaunch& rank, const Site& site) {
  return {{kDeploymentLabel, site.deployment},
          {kKeyLabel, spec.key},
          {kNonceLabel, spec.nonce},
          {kPoolLabel, std::to_string(rank.pool)},
          {kRankLabel, std::to_string(rank.rank)},
          {kDirectoryLabel, spec.paths.attempt_dir},
          {"tp.owner", spec.owner},
          {"tp.run", spec.run_id},
          {"tp.step", spec.step_name}};
}

Ordered MountsOf(const ExecutorConfig& config, const Site& site) {
  Ordered mounts = Ordered::array();
  if (config.volume_name.empty()) {
    mounts.push_back({{"Type", "bind"}, {"Source", site.storage_root}, {"Target", site.storage_root}});
  } else {
    mounts.push_back({{"Type", "volume"}, {"Source", config.volume_name}, {"Target", site.storage_root}});
  }
  for (const std::string& volume : config.volumes) {
    const size_t first = volume.find(':');
    const bool read_only = volume.ends_with(":ro");
    const std::string source = volume.substr(0, first);
    const std::string target = volume.substr(first + 1, volume.size() - first - 1 - (read_only ? 3 : 0));
    mounts.push_back({{"Type", source.starts_with('/') ? "bind" : "volume"},
                      {"Source", source},
                      {"Target", target},
                      {"ReadOnly", read_only}});
  }
  return mounts;
}

Ordered DeviceAt(const std::string& path, const std::string& name) {
  return {{"PathOnHost", path}, {"PathInContainer", "/dev/" + name}, {"CgroupPermissions", "rw"}};
}

Ordered RequestOf(const char* driver, const std::vector<std::string>& ids) {
  return Ordered::array(
      {{{"Driver", driver}, {"DeviceIDs", ids}, {"Capabilities", Ordered::array({Ordered::array({"gpu"})})}}});
}

Ordered DeviceNodes(const std::vector<int>& cards, const Site& site) {
  Ordered devices = Ordered::array();
  for (const int card : cards) {
    const std::string name = fmt::format("nvidia{}", card);
    devices.push_back(DeviceAt(fmt::format("{}/{}", site.device_directory, name), name));
  }
  for (const std::string& name : site.devices) {
    devices.push_back(DeviceAt(fmt::format("{}/{}", site.device_directory, name), name));
  }
  return devices;
}

void AddCards(const LaunchSpec& spec, const RankLaunch& rank, const Site& site, Ordered& host) {
  if (!HasDevices(spec, rank)) return;
  const std::vector<int>& cards = rank.placement.cards;
  std::vector<std::string> names;
  switch (site.cards_by) {
    case CardsBy::kNvidiaRuntime:
      for (const int card : cards) names.push_back(std::to_string(card));
      host["DeviceRequests"] = RequestOf("nvidia", names);
      return;
    case CardsBy::kCdi:
      std::transform(cards.begin(), cards.end(), std::back_inserter(names), CdiName);
      host["DeviceRequests"] = RequestOf("cdi", names);
      return;
    case CardsBy::kDeviceNodes:
      host["Devices"] = DeviceNodes(cards, site);
      return;
  }
}

void AddLimits(const RankLimits& limits, Ordered& host) {
  if (limits.cpus) host["NanoCpus"] = *limits.cpus * kNanosPerCpu;
  if (limits.memory_bytes) {
    host["Memory"] = *limits.memory_bytes;
    host["MemorySwap"] = *limits.memory_bytes;  // no swap besides
  }
  if (limits.shm_bytes) host["ShmSize"] = *limits.shm_bytes;
  if (limits.memlock_bytes) {
    host["Ulimits"] =
        Ordered::array({{{"Name", "memlock"}, {"Soft", *limits.memlock_bytes}, {"Hard", *limits.memlock_bytes}}});
  }
}

Ordered BodyOf(const LaunchSpec& spec, const RankLaunch& rank, const ExecutorConfig& config, const Site& site) {
  LaunchSpec encoded = spec;
  if (!HasTextWords(spec)) std::transform(spec.argv.begin(), spec.argv.end(), encoded.argv.begin(), Hex);
  Ordered command = Ordered::array({"run"});
  for (const std::string& word : launch::RunArguments(encoded, rank, {})) command.push_back(word);
  Ordered host = {{"RestartPolicy", {{"Name", "no"}}}, {"AutoRemove", false}, {"Mounts", MountsOf(config, site)}};
  const std::string network = JobNetwork(spec, config);
  if (!network.empty()) {
    host["NetworkMode"] = network;
  } else if (!config.network.empty()) {
    host["NetworkMode"] = config.network;
  }
  if (static_cast<size_t>(rank.pool) < spec.demands.size()) {
    AddLimits(spec.demands[static_cast<size_t>(rank.pool)].limits, host);
  }
  AddCards(spec, rank, site, host);
  Ordered body = {{"Image", spec.image.empty() ? config.image : spec.image},
                  {"Entrypoint", Ordered::array({site.rank_binary})},
                  {"Cmd", command},
                  {"Env", EnvOf(spec, rank, config, site)},
                  {"User", config.user.empty() ? site.user : config.user},
                  {"WorkingDir", "/"},
                  {"Labels", LabelsOf(spec, rank, site)},
                  {"StopSignal", "SIGTERM"},
                  {"HostConfig", host}};
  if (!network.empty()) {
    const Ordered aliases = Ordered::array({rank.placement.address});
    body["NetworkingConfig"] = {{"EndpointsConfig", {{network, {{"Aliases", aliases}}}}}};
  }
  return body;
}

}  // namespace

absl::StatusOr<ExecutorConfig> ParseExecutorConfig(const std::string& json, const std::string& storage_root) {
  const nlohmann::json config = nlohmann::json::parse(json.empty() ? "{}" : json, nullptr, false);
  if (!config.is_object()) return InvalidArgument("executor_config: not a JSON object");
  ExecutorConfig parsed;
  parsed.image = TextAt(config, "image");
  parsed.network = TextAt(config, "network");
  parsed.user = TextAt(config, "user");
  if (const auto volumes = config.find("volumes"); volumes != config.end() && volumes->is_array()) {
    for (const nlohmann::json& volume : *volumes) {
      if (volume.is_string()) parsed.volumes.push_back(volume.get<std::string>());
    }
  }
  if (const auto storage = config.find("storage"); storage != config.end() && storage->is_object()) {
    parsed.volume_name = TextAt(*storage, "volume_name");
    const std::string tpd_path = TextAt(*storage, "tpd_path");
    if (!tpd_path.empty() && tpd_path != storage_root) {
      return InvalidArgument("storage.tpd_path: '{}' is not storage.root {}: tpd must see the volume's files there",
                             tpd_path, storage_root);
    }
  }
  if (const std::string limit = TextAt(config, "image_pull_deadline"); !limit.empty()) {
    TP_ASSIGN_OR_RETURN(parsed.image_pull_deadline, ParseDuration(limit));
  }
  if (TextAt(config, "run_as") == "owner") {
    return InvalidArgument("run_as: the docker backend runs jobs under tpd's user, or under the one that `user` names");
  }
  return parsed;
}

std::string ContainerName(const std::string& key, int pool, int rank) {
  return fmt::format("{}-{}-{}", key, pool, rank);
}

std::string JobNetwork(const LaunchSpec& spec, const ExecutorConfig& config) {
  return spec.ranks.size() > 1 && IsOwnNetwork(config.network) ? fmt::format("{}-{}", spec.key, spec.nonce) : "";
}

std::string NetworkBody(const LaunchSpec& spec, const std::string& name, const std::string& deployment) {
  return Ordered({{"Name", name},
                  {"CheckDuplicate", true},
                  {"Driver", "bridge"},
                  {"Labels", {{kDeploymentLabel, deployment}, {kKeyLabel, spec.key}}}})
      .dump();
}

absl::Status CheckForContainers(const LaunchSpec& spec, const ExecutorConfig& config) {
  if (spec.image.empty() && config.image.empty()) {
    return InvalidArgument(
        "image: a container needs one: tp submit --image, or `image` in the config of executor {} for all",
        spec.executor);
  }
  TP_RETURN_IF_ERROR(launch::CheckSpec(spec));
  std::set<std::string> names;
  for (const RankLaunch& rank : spec.ranks) {
    for (const auto& [name, value] : rank.env) {
      if (!IsText(name)) return InvalidArgument("env: a name that is not UTF-8 cannot be given to a container");
    }
    if (rank.pool != 0) return InvalidArgument("ranks: the docker backend runs one pool, not several");
    if (!NeedsNames(spec, config)) continue;
    if (!IsOwnNetwork(config.network)) {
      return InvalidArgument(
          "network: {}: the containers of a job find each other on a network of its own or on the host's: leave it "
          "out, "
          "or set network: host",
          config.network);
    }
    if (!IsName(rank.placement.address) || !names.insert(rank.placement.address).second) {
      return InvalidArgument(
          "ranks: the containers of a job find each other by the addresses of its nodes, and '{}' is no name of one "
          "alone: give each node of the series a name of its own as address, or set network: host",
          rank.placement.address);
    }
  }
  return absl::OkStatus();
}

std::string CreateBody(const LaunchSpec& spec, const RankLaunch& rank, const ExecutorConfig& config, const Site& site) {
  return BodyOf(spec, rank, config, site).dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

std::string DescribeRequests(const LaunchSpec& spec, const ExecutorConfig& config, const Site& site) {
  std::string text;
  for (const RankLaunch& rank : spec.ranks) {
    RankLaunch masked = rank;
    for (auto& [name, value] : masked.env) {
      if (LooksSecret(name, value)) value = kMaskedValue;
    }
    text += fmt::format("POST /containers/create?name={}\n{}\n", ContainerName(spec.key, rank.pool, rank.rank),
                        BodyOf(spec, masked, config, site).dump(2, ' ', false, Ordered::error_handler_t::replace));
  }
  return text;
}

}  // namespace tp::docker
