// tpd's configuration files as the API sees them. Thread-safe; every call but the last of a reload reads
// files and blocks, so it runs on a worker thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "config/difference.h"
#include "core/registry.h"

namespace tp::api {

// What the files say, held against what is in force.
struct ReloadPlan {
  std::shared_ptr<const core::Registry> current;
  std::shared_ptr<const core::Registry> candidate;  // after a reload: in force, with its version
  std::vector<config::Change> changes;
  std::vector<std::string> restart_keys;
};

struct RegistryStatus {
  struct Fault {
    absl::Time at;
    std::string text;  // `file:line:column: sentence`, a line each
  };

  int64_t version = 0;
  absl::Time loaded_at;
  std::string source_sha256;  // of what is in force
  std::string directory;      // empty: the built-in files
  std::optional<Fault> last_fault;
  bool differs_on_disk = false;  // the files are not what is in force
  std::vector<std::string> restart_keys;
};

class ConfigurationPort {
 public:
  virtual ~ConfigurationPort() = default;

  // Reads the files; changes nothing. FAILED_PRECONDITION: they are faulty, a line for each problem.
  virtual absl::StatusOr<ReloadPlan> Plan() = 0;

  // Hands a registry on to the loop. Other reloads wait meanwhile, so that the loop sees them in order.
  using HandOver = std::function<void(const ReloadPlan&)>;

  // Takes the registry of the files into force: all or nothing. Called with what is to be handed over even
  // where nothing changed. Errors as Plan, and then nothing is handed over.
  virtual absl::Status Reload(const HandOver& hand_over) = 0;

  virtual RegistryStatus Status() = 0;
};

}  // namespace tp::api
