// What the engine is asked for: the body of a rank's create call. Pure; the same input gives the same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tp/launch.h"

namespace tp::docker {

// An executor's config (config/backend_config.cc says what its keys mean).
struct ExecutorConfig {
  std::string image;
  std::string network;  // bridge, host, none, or a name; empty: the engine's own, or the job's for several ranks
  std::string user;     // empty: tpd's own
  std::vector<std::string> volumes;  // SOURCE:TARGET[:ro]
  std::string volume_name;           // of the storage; empty: storage.root is mounted itself
  absl::Duration image_pull_deadline = absl::Minutes(30);
};
// INVALID_ARGUMENT names the key that makes no sense here.
absl::StatusOr<ExecutorConfig> ParseExecutorConfig(const std::string& json, const std::string& storage_root);

// How an engine is asked for cards. Whichever it is, they are numbered from 0 in a container.
enum class CardsBy {
  kNvidiaRuntime,  // DeviceRequests of the driver `nvidia`
  kCdi,            // DeviceRequests of the driver `cdi`: names of the Container Device Interface
  kDeviceNodes,    // /dev/nvidia<N>
};

// What of the machine decides about a container.
struct Site {
  std::string deployment;
  std::string storage_root;
  std::string rank_binary;  // as the containers see it
  std::string user;         // UID:GID of tpd
  CardsBy cards_by = CardsBy::kDeviceNodes;
  std::vector<std::string> devices;  // that every rank with cards gets besides them, as device nodes
  std::string device_directory = "/dev";
};

// `<key>-<pool>-<rank>`
std::string ContainerName(const std::string& key, int pool, int rank);

// The network of a launch of several ranks; empty: it has none of its own. Names of networks are not unique to an
// engine, so two launches of one attempt have two.
std::string JobNetwork(const LaunchSpec& spec, const ExecutorConfig& config);
std::string NetworkBody(const LaunchSpec& spec, const std::string& name, const std::string& deployment);

// INVALID_ARGUMENT names what a container cannot be given.
absl::Status CheckForContainers(const LaunchSpec& spec, const ExecutorConfig& config);

std::string CreateBody(const LaunchSpec& spec, const RankLaunch& rank, const ExecutorConfig& config, const Site& site);

// The same for people, secret-looking values masked.
std::string DescribeRequests(const LaunchSpec& spec, const ExecutorConfig& config, const Site& site);

}  // namespace tp::docker
