// Three nodes of eight cards, and the cpu series.
#pragma once

#include <string>

#include "core/registry.h"

namespace tp::api {

inline core::Registry SampleRegistry() {
  core::Registry registry;
  registry.version = 3;
  core::Series h200;
  h200.name = "h200";
  h200.description = "eight cards each";
  h200.gpus_per_node = 8;
  h200.nodes = {{"node-1", "127.0.0.1"}, {"node-2", "127.0.0.1"}, {"node-3", "127.0.0.1"}};
  h200.virtual_cards = true;
  h200.executor = "gpu/default";
  registry.series["h200"] = h200;
  core::Profile profile;
  profile.name = "h200";
  profile.series = "h200";
  profile.default_total = 16;
  registry.profiles["h200"] = profile;
  core::Executor executor;
  executor.name = "gpu/default";
  executor.provider = "gpu";
  executor.profile = "default";
  executor.backend = "local";
  registry.executors["gpu/default"] = executor;
  return registry;
}

}  // namespace tp::api
