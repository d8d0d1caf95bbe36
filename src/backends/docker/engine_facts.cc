#include "backends/docker/engine_facts.h"

#include <algorithm>

#include <fmt/format.h>
#include "backends/docker/json_access.h"
#include "base/status.h"

namespace tp::docker {
namespace {

using Json = nlohmann::json;

// The oldest API with all that is used here (Docker 20.10), and the newest that this was written for.
constexpr int kOldestMinor = 41;
constexpr int kNewestMinor = 51;
constexpr std::string_view kCdiCard = "nvidia.com/gpu=";

// The minor of `1.41`; nothing for another major.
std::optional<int> MinorOf(std::string_view version) {
  return version.starts_with("1.") ? IntegerOf(version.substr(2)) : std::nullopt;
}

absl::Status CheckVersion(const Json& version) {
  const std::string newest = TextAt(version, "ApiVersion");
  const std::string oldest = TextAt(version, "MinAPIVersion");
  const std::optional<int> minor = MinorOf(newest);
  if (!minor) return Unavailable("the docker engine's version cannot be read: is it a docker engine?");
  if (*minor >= kOldestMinor && MinorOf(oldest).value_or(0) <= kNewestMinor) return absl::OkStatus();
  return FailedPrecondition("the docker engine speaks API {} to {}, and tp 1.{} to 1.{}: update the older of the two",
                            oldest, newest, kOldestMinor, kNewestMinor);
}

bool IsPodman(const Json& version) {
  const Json& components = At(version, "Components");
  return components.is_array() && std::any_of(components.begin(), components.end(), [](const Json& component) {
           return TextAt(component, "Name") == "Podman Engine";
         });
}

// Rootless, or with userns-remap: both are security options.
bool MapsUsers(const Json& info) {
  const Json& options = At(info, "SecurityOptions");
  return options.is_array() && std::any_of(options.begin(), options.end(), [](const Json& option) {
           const std::string text = option.is_string() ? option.get<std::string>() : "";
           return text.starts_with("name=rootless") || text.starts_with("name=userns");
         });
}

std::set<int> CdiCards(const Json& info) {
  std::set<int> cards;
  const Json& devices = At(info, "DiscoveredDevices");
  if (!devices.is_array()) return cards;
  for (const Json& device : devices) {
    const std::optional<int> card = TextAt(device, "Source") == "cdi" ? CdiCard(TextAt(device, "ID")) : std::nullopt;
    if (card) cards.insert(*card);
  }
  return cards;
}

}  // namespace

absl::StatusOr<EngineFacts> ReadFacts(std::string_view version_json, std::string_view info_json) {
  const Json version = Json::parse(version_json, nullptr, false);
  TP_RETURN_IF_ERROR(CheckVersion(version));
  const Json info = Json::parse(info_json, nullptr, false);
  if (!info.is_object()) return Unavailable("what the docker engine says of itself cannot be read");
  if (MapsUsers(info)) {
    return FailedPrecondition(
        "the docker engine maps users (it is rootless, or has userns-remap), so that tpd could not read what its jobs "
        "write: use an engine that maps none");
  }
  EngineFacts facts;
  facts.api_version = TextAt(version, "ApiVersion");
  facts.podman = IsPodman(version);
  const Json& runtimes = At(info, "Runtimes");
  facts.nvidia_runtime = runtimes.is_object() && runtimes.contains("nvidia");
  facts.cdi_cards = CdiCards(info);
  return facts;
}

std::optional<int> CdiCard(std::string_view name) {
  return name.starts_with(kCdiCard) ? IntegerOf(name.substr(kCdiCard.size())) : std::nullopt;
}

std::string CdiName(int card) { return fmt::format("{}{}", kCdiCard, card); }

}  // namespace tp::docker
