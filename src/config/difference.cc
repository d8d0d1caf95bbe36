#include "config/difference.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tp::config {
namespace {

std::string_view Name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kRemoved:
      return "removed";
    case ChangeKind::kChanged:
      return "changed";
  }
  return "";
}

template <typename Map>
void Compare(const std::string& what, const Map& from, const Map& to, std::vector<Change>& changes) {
  for (const auto& [name, value] : to) {
    const auto before = from.find(name);
    if (before == from.end()) {
      changes.push_back({what, name, ChangeKind::kAdded});
    } else if (!(before->second == value)) {
      changes.push_back({what, name, ChangeKind::kChanged});
    }
  }
  for (const auto& [name, value] : from) {
    if (!to.contains(name)) changes.push_back({what, name, ChangeKind::kRemoved});
  }
}

std::map<std::string, int64_t> ByKey(const core::QuotaLimits& limits) {
  std::map<std::string, int64_t> by_key;
  const auto add = [&by_key](const std::string& key, const std::optional<int64_t>& limit) {
    if (limit) by_key[key] = *limit;
  };
  add("gpus", limits.gpus);
  for (const auto& [series, gpus] : limits.series_gpus) add("series." + series, gpus);
  add("jobs", limits.jobs);
  add("gpu_hours", limits.gpu_hours);
  add("storage", limits.storage_bytes);
  return by_key;
}

// Webhooks and mail alike.
std::map<std::string, std::pair<core::Webhook, core::MailHook>> ByName(const core::Receivers& receivers) {
  std::map<std::string, std::pair<core::Webhook, core::MailHook>> by_name;
  for (const auto& [name, webhook] : receivers.webhooks) by_name[name].first = webhook;
  if (receivers.mail) by_name[std::string(core::kMailReceiver)].second = *receivers.mail;
  return by_name;
}

struct ServerKey {
  std::string_view key;
  std::function<bool(const ServerConfig&, const ServerConfig&)> same;
};

template <typename Get>
ServerKey KeyOf(std::string_view key, Get get) {
  return {key, [get](const ServerConfig& a, const ServerConfig& b) { return get(a) == get(b); }};
}

template <typename T>
ServerKey PolicyKey(std::string_view key, T core::Policy::*member) {
  return KeyOf(key, [member](const ServerConfig& config) { return config.policy.*member; });
}

// Every key of tpd.yaml but those that end up in the registry (quotas, notify, jobs.executors and what shapes them).
const std::vector<ServerKey>& ServerKeys() {
  using core::Policy;
  using Config = ServerConfig;
  static const std::vector<ServerKey> keys = {
      KeyOf("server.listen", [](const Config& c) { return c.listen; }),
      KeyOf("server.deployment", [](const Config& c) { return c.deployment; }),
      KeyOf("storage.root", [](const Config& c) { return c.storage_root; }),
      KeyOf("snapshots.max_size", [](const Config& c) { return c.snapshots.max_bytes; }),
      KeyOf("snapshots.max_user_size", [](const Config& c) { return c.snapshots.max_user_bytes; }),
      PolicyKey("scheduling.stop_grace", &Policy::stop_grace),
      PolicyKey("scheduling.pause_grace", &Policy::pause_grace),
      PolicyKey("scheduling.start_timeout", &Policy::start_timeout),
      PolicyKey("scheduling.user_retries", &Policy::user_retries),
      PolicyKey("scheduling.infrastructure_retries", &Policy::infrastructure_retries),
      PolicyKey("scheduling.retry_cooldown", &Policy::retry_cooldown),
      PolicyKey("scheduling.relaunch_backoff", &Policy::relaunch_backoff),
      PolicyKey("scheduling.relaunch_backoff_max", &Policy::relaunch_backoff_max),
      PolicyKey("scheduling.aging", &Policy::aging),
      PolicyKey("scheduling.aging_cap", &Policy::aging_cap),
      PolicyKey("scheduling.default_time_limit", &Policy::default_time_limit),
      PolicyKey("scheduling.fair_share", &Policy::fair_share),
      PolicyKey("scheduling.fair_share_half_life", &Policy::fair_share_half_life),
      PolicyKey("scheduling.min_flip", &Policy::min_flip),
      PolicyKey("scheduling.idle_after", &Policy::idle_after),
      PolicyKey("scheduling.kill_repeat", &Policy::kill_repeat),
      PolicyKey("scheduling.fence_repeat", &Policy::fence_repeat),
      PolicyKey("scheduling.absent_grace", &Policy::absent_grace),
      PolicyKey("scheduling.absent_confirmations", &Policy::absent_confirmations),
      KeyOf("accounting.timezone", [](const Config& c) { return c.accounting_zone.name(); }),
      KeyOf("platform.docker.reserved_gpu_device_ids", [](const Config& c) { return c.docker_cards; }),
      KeyOf("backends.docker.host", [](const Config& c) { return c.engines.docker.host; }),
      KeyOf("backends.docker.tls_ca", [](const Config& c) { return c.engines.docker.tls_ca; }),
      KeyOf("backends.docker.tls_cert", [](const Config& c) { return c.engines.docker.tls_cert; }),
      KeyOf("backends.docker.tls_key", [](const Config& c) { return c.engines.docker.tls_key; }),
      KeyOf("backends.node.user", [](const Config& c) { return c.engines.node.user; }),
      KeyOf("backends.node.port", [](const Config& c) { return c.engines.node.port; }),
      KeyOf("backends.node.identity_file", [](const Config& c) { return c.engines.node.identity_file; }),
      KeyOf("backends.node.known_hosts", [](const Config& c) { return c.engines.node.known_hosts; }),
      KeyOf("backends.node.ssh_config", [](const Config& c) { return c.engines.node.ssh_config; }),
      KeyOf("backends.node.storage", [](const Config& c) { return c.engines.node.storage; }),
      KeyOf("jobs.log_max_size", [](const Config& c) { return c.log_max_bytes; }),
      KeyOf("jobs.heartbeat", [](const Config& c) { return c.heartbeat; }),
  };
  return keys;
}

}  // namespace

std::string Change::text() const { return fmt::format("{} {} {}", what, name, Name(kind)); }

std::vector<Change> Differences(const core::Registry& from, const core::Registry& to) {
  std::vector<Change> changes;
  Compare("series", from.series, to.series, changes);
  Compare("profile", from.profiles, to.profiles, changes);
  Compare("executor", from.executors, to.executors, changes);
  Compare("framework", from.frameworks, to.frameworks, changes);
  Compare("recipe", from.recipes, to.recipes, changes);
  Compare("quota", ByKey(from.quota_defaults), ByKey(to.quota_defaults), changes);
  Compare("receiver", ByName(from.receivers), ByName(to.receivers), changes);
  return changes;
}

std::vector<std::string> RestartKeys(const ServerConfig& running, const ServerConfig& file) {
  std::vector<std::string> differing;
  for (const ServerKey& key : ServerKeys()) {
    if (!key.same(running, file)) differing.emplace_back(key.key);
  }
  return differing;
}

}  // namespace tp::config
