#include "tpd/backends.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "backends/docker/docker_backend.h"
#include "backends/local/local_backend.h"
#include "backends/node/node_backend.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

constexpr char kLocal[] = "local";
constexpr char kDocker[] = "docker";
constexpr char kNode[] = "node";

// Of this process before the usual places: where an admin has put nvidia-smi for it.
std::string ToolPath() {
  const char* const path = std::getenv("PATH");
  return path == nullptr ? launch::kToolPath : fmt::format("{}:{}", path, launch::kToolPath);
}

bool IsNamed(const core::Registry& registry, const std::string& backend) {
  return std::any_of(registry.executors.begin(), registry.executors.end(),
                     [&backend](const auto& executor) { return executor.second.backend == backend; });
}

absl::StatusOr<std::shared_ptr<Backend>> MakeLocal(const config::ServerConfig& config, const BackendPlaces& places) {
  local::LocalOptions options;
  options.deployment = config.deployment;
  options.storage_root = places.storage_root;
  options.rank_binary = places.rank_binary;
  options.tool_path = ToolPath();
  return local::LocalBackend::Create(std::move(options));
}

absl::StatusOr<std::shared_ptr<Backend>> MakeDocker(const config::ServerConfig& config, const BackendPlaces& places) {
  const config::DockerEngine& engine = config.engines.docker;
  docker::DockerOptions options;
  options.deployment = config.deployment;
  options.storage_root = places.storage_root;
  options.rank_binary = places.rank_binary;
  options.address = {
      .host = engine.host, .tls_ca = engine.tls_ca, .tls_cert = engine.tls_cert, .tls_key = engine.tls_key};
  options.tool_path = ToolPath();
  return docker::DockerBackend::Create(std::move(options));
}

absl::StatusOr<std::shared_ptr<Backend>> MakeNode(const config::ServerConfig& config, const BackendPlaces& places) {
  const config::NodeAccess& access = config.engines.node;
  node::NodeOptions options;
  options.deployment = config.deployment;
  options.storage_root = places.storage_root;
  options.rank_binary = places.rank_binary;
  options.data_directory = places.data_directory;
  options.ssh = {.user = access.user,
                 .port = access.port,
                 .identity_file = access.identity_file,
                 .known_hosts = access.known_hosts,
                 .config_file = access.ssh_config};
  options.copied = access.storage == config::NodeStorage::kCopied;
  return node::NodeBackend::Create(std::move(options));
}

}  // namespace

absl::StatusOr<Backends> MakeBackends(const config::ServerConfig& config, const core::Registry& registry,
                                      const BackendPlaces& places) {
  Backends backends;
  TP_ASSIGN_OR_RETURN(backends[kLocal], MakeLocal(config, places));
  if (IsNamed(registry, kDocker)) {
    TP_ASSIGN_OR_RETURN(backends[kDocker], MakeDocker(config, places));
  }
  if (IsNamed(registry, kNode)) {
    TP_ASSIGN_OR_RETURN(backends[kNode], MakeNode(config, places));
  }
  return backends;
}

std::vector<std::string> MissingBackends(const core::Registry& registry, const Backends& backends) {
  std::set<std::string> missing;
  for (const auto& [name, executor] : registry.executors) {
    if (!backends.contains(executor.backend)) missing.insert(executor.backend);
  }
  return {missing.begin(), missing.end()};
}

}  // namespace tp::tpd
