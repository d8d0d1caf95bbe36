// tpd.yaml: how this tpd behaves. The hardware is in registry.yaml (registry_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "config/engines.h"
#include "config/quota_defaults.h"
#include "config/receivers.h"
#include "core/step.h"
#include "decode/type.h"

namespace tp::config {

struct ListenAddress {
  std::string host = "127.0.0.1";
  int port = 7411;  // 0: any free one
  bool operator==(const ListenAddress&) const = default;

  std::string text() const;  // `127.0.0.1:7411`, `[::1]:7411`
};

// Which of the machine's cards the docker backend may use, shared with others on the machine.
struct DockerCards {
  enum class Kind { kAll, kNone, kList };
  Kind kind = Kind::kAll;
  std::vector<int> ids;  // kList
  bool operator==(const DockerCards&) const = default;
};

// Limits of uploaded working directories.
struct SnapshotLimits {
  int64_t max_bytes = int64_t{2} << 30;         // of one snapshot
  int64_t max_user_bytes = int64_t{100} << 30;  // of all that a user's runs refer to
  bool operator==(const SnapshotLimits&) const = default;
};

struct ServerConfig {
  ListenAddress listen;
  std::string deployment = "tp";
  std::string storage_root;  // absolute; empty: below tpd's data directory
  SnapshotLimits snapshots;
  core::Policy policy;
  int64_t log_max_bytes = int64_t{1} << 30;  // of one rank
  absl::Duration heartbeat = absl::Seconds(10);
  absl::TimeZone accounting_zone = absl::UTCTimeZone();
  std::string default_backend;  // never empty once loaded
  DockerCards docker_cards;
  Engines engines;
  bool operator==(const ServerConfig&) const = default;
};

// --- The file ------------------------------------------------------------------------------------

struct ExecutorEntry {
  std::string provider;
  std::string profile;
  std::string backend;
  nlohmann::json config = nlohmann::json::object();  // by BackendConfigType(backend)
};

struct ServerFile {
  struct Server {
    ListenAddress listen;
    std::string deployment = "tp";
  };
  struct Storage {
    std::string root;
  };
  struct Snapshots {
    int64_t max_size = SnapshotLimits{}.max_bytes;
    int64_t max_user_size = SnapshotLimits{}.max_user_bytes;
  };
  struct Accounting {
    absl::TimeZone timezone = absl::UTCTimeZone();
  };
  struct Docker {
    DockerCards reserved_gpu_device_ids;
  };
  struct Platform {
    std::optional<std::string> default_backend;
    Docker docker;
  };
  struct Jobs {
    std::vector<decode::Located<ExecutorEntry>> executors;
    nlohmann::json executor_defaults = nlohmann::json::object();  // by backend
    int64_t log_max_size = ServerConfig{}.log_max_bytes;
    absl::Duration heartbeat = ServerConfig{}.heartbeat;
  };

  Server server;
  Storage storage;
  decode::Located<Snapshots> snapshots;
  decode::Located<core::Policy> scheduling;
  QuotaEntry quotas;
  ReceiversEntry notify;
  Accounting accounting;
  Platform platform;
  decode::Located<Engines> backends;
  Jobs jobs;
};

// The description of tpd.yaml.
const decode::Type<ServerFile>& ServerFileType();

// What the file says, with defaults; `in_kubernetes` decides the default backend where none is named.
// Rules between keys add to `problems`. Needs a file that was decoded without problems.
ServerConfig BuildServerConfig(const ServerFile& file, bool in_kubernetes, decode::Problems& problems);

}  // namespace tp::config
