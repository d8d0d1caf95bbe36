// The engines that a configuration names, each with its backend.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/server_config.h"
#include "core/registry.h"
#include "tp/backend.h"

namespace tp::tpd {

using Backends = std::map<std::string, std::shared_ptr<Backend>>;  // by name

struct BackendPlaces {
  std::string storage_root;
  std::string data_directory;
  std::string rank_binary;
};

// `local` always; the others where an executor names them. An engine that does not answer is no error, a configuration
// that cannot work is.
absl::StatusOr<Backends> MakeBackends(const config::ServerConfig& config, const core::Registry& registry,
                                      const BackendPlaces& places);

// Backends that executors name and tpd does not have, sorted.
std::vector<std::string> MissingBackends(const core::Registry& registry, const Backends& backends);

}  // namespace tp::tpd
