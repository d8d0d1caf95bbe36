#include "backends/docker/container.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "backends/docker/engine_facts.h"
#include "backends/docker/json_access.h"

namespace tp::docker {
namespace {

using Json = nlohmann::json;

constexpr int kKilled = 137;
constexpr std::string_view kCardDevice = "/dev/nvidia";
constexpr std::string_view kNever = "0001-01-01T00:00:00Z";

bool FlagAt(const Json& json, const char* key) { return At(json, key).is_boolean() && At(json, key).get<bool>(); }

std::map<std::string, std::string> LabelsOf(const Json& json) {
  std::map<std::string, std::string> labels;
  if (!json.is_object()) return labels;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

ContainerState StateOf(std::string_view word) {
  if (word == "created") return ContainerState::kCreated;
  if (word == "exited" || word == "dead") return ContainerState::kExited;
  return ContainerState::kActive;
}

std::string WithoutSlash(const std::string& name) { return name.starts_with('/') ? name.substr(1) : name; }

absl::Time TimeOf(const std::string& text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error) ? time : absl::InfinitePast();
}

// The card of `/dev/nvidia3`; not of nvidiactl and its like.
std::optional<int> CardOfDevice(const std::string& path) {
  return path.starts_with(kCardDevice) ? IntegerOf(std::string_view(path).substr(kCardDevice.size())) : std::nullopt;
}

// A card may be named by what only its driver knows (GPU-..., nvidia.com/gpu=all): then it could be any of them.
void AddNamed(const std::string& name, int known, std::set<int>& cards) {
  const std::optional<int> by_cdi = CdiCard(name);
  if (const auto card = by_cdi ? by_cdi : IntegerOf(name)) {
    cards.insert(*card);
    return;
  }
  for (int card = 0; card < known; ++card) cards.insert(card);
}

void AddRequested(const Json& request, int known, std::set<int>& cards) {
  const Json& ids = At(request, "DeviceIDs");
  if (ids.is_array() && !ids.empty()) {
    for (const Json& id : ids) {
      AddNamed(id.is_string() ? id.get<std::string>() : std::string(), known, cards);
    }
    return;
  }
  // A count, or all of them: which ones the engine has chosen it does not say.
  const Json& count = At(request, "Count");
  const int wanted = count.is_number_integer() ? count.get<int>() : 0;
  for (int card = 0; card < known && (wanted < 0 || card < wanted); ++card) cards.insert(card);
}

// As the runtime for cards reads it: `all`, `none`, or a list of names.
void AddVisible(const Json& env, int known, std::set<int>& cards) {
  constexpr std::string_view kName = "NVIDIA_VISIBLE_DEVICES=";
  if (!env.is_array()) return;
  for (const Json& entry : env) {
    if (!entry.is_string() || !entry.get_ref<const std::string&>().starts_with(kName)) continue;
    std::istringstream list(entry.get<std::string>().substr(kName.size()));
    for (std::string one; std::getline(list, one, ',');) {
      if (one != "none" && one != "void") AddNamed(one, known, cards);
    }
  }
}

}  // namespace

std::string Container::Label(const std::string& label) const {
  const auto found = labels.find(label);
  return found == labels.end() ? "" : found->second;
}

std::optional<std::pair<int, int>> Container::Rank() const {
  const auto pool = IntegerOf(Label(kPoolLabel));
  const auto rank = IntegerOf(Label(kRankLabel));
  if (!pool || !rank) return std::nullopt;
  return std::pair(*pool, *rank);
}

std::optional<std::vector<Container>> ParseContainerList(std::string_view json) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<Container> containers;
  for (const Json& item : list) {
    Container container;
    container.id = TextAt(item, "Id");
    const Json& names = At(item, "Names");
    if (names.is_array() && !names.empty() && names[0].is_string()) {
      container.name = WithoutSlash(names[0].get<std::string>());
    }
    container.labels = LabelsOf(At(item, "Labels"));
    const std::string state = TextAt(item, "State");
    if (container.id.empty() || state.empty()) return std::nullopt;
    container.state = StateOf(state);
    containers.push_back(std::move(container));
  }
  return containers;
}

std::optional<Inspected> ParseInspect(std::string_view json) {
  const Json item = Json::parse(json, nullptr, false);
  const Json& state = At(item, "State");
  const std::string status = TextAt(state, "Status");
  Inspected inspected;
  inspected.container.id = TextAt(item, "Id");
  if (status.empty() || inspected.container.id.empty()) return std::nullopt;
  inspected.container.name = WithoutSlash(TextAt(item, "Name"));
  inspected.container.labels = LabelsOf(At(At(item, "Config"), "Labels"));
  inspected.container.state = StateOf(status);
  inspected.started_once = TextAt(state, "StartedAt") != kNever && !TextAt(state, "StartedAt").empty();
  inspected.exit_code = At(state, "ExitCode").is_number_integer() ? At(state, "ExitCode").get<int>() : -1;
  inspected.oom_killed = FlagAt(state, "OOMKilled");
  inspected.error = TextAt(state, "Error");
  inspected.finished_at = TimeOf(TextAt(state, "FinishedAt"));
  return inspected;
}

EngineEnd EndOf(const Inspected& inspected, bool in_outage) {
  if (inspected.container.state != ContainerState::kExited) return EngineEnd::kNone;
  // A child that was killed for memory is told the same way, whatever became of the job.
  if (inspected.oom_killed && inspected.exit_code == kKilled) return EngineEnd::kOutOfMemory;
  if (in_outage) return EngineEnd::kNone;
  return inspected.exit_code == 0 ? EngineEnd::kExitedZero : EngineEnd::kNone;
}

std::vector<ForeignCard> CardsHeldBy(std::string_view inspect_json, int known) {
  const Json item = Json::parse(inspect_json, nullptr, false);
  const Json& host = At(item, "HostConfig");
  std::set<int> cards;
  if (const Json& requests = At(host, "DeviceRequests"); requests.is_array()) {
    for (const Json& request : requests) AddRequested(request, known, cards);
  }
  if (const Json& devices = At(host, "Devices"); devices.is_array()) {
    for (const Json& device : devices) {
      if (const auto card = CardOfDevice(TextAt(device, "PathOnHost"))) cards.insert(*card);
    }
  }
  if (TextAt(host, "Runtime") == "nvidia") AddVisible(At(At(item, "Config"), "Env"), known, cards);
  std::vector<ForeignCard> held;
  held.reserve(cards.size());
  for (const int card : cards) held.push_back({card, "container " + WithoutSlash(TextAt(item, "Name"))});
  return held;
}

}  // namespace tp::docker
