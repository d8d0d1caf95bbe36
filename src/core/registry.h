// The hardware registry as an immutable value (DESIGN 3), the way the loop and the resource flag use
// it. Filled by src/config from registry.yaml and tpd.yaml. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/step.h"

namespace tp::core {

struct Node {
  std::string name;
  std::string address;  // how ranks reach it
};

struct Series {
  std::string name;
  std::string description;
  int gpus_per_node = 0;  // 0: a cpu series, totals count nodes
  std::vector<Node> nodes;
  bool virtual_cards = false;  // declared, not looked for (no accelerator needed)
  std::string executor;              // name of an Executor
  std::string executor_distributed;  // for several nodes or pools; empty: `executor`
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> locked_env;
  std::string constraint;  // slurm
};

// Overrides of one framework, as JSON text of an object.
using FrameworkOverrides = std::map<std::string, std::string>;

struct ShapeOverrides {
  std::map<std::string, std::string> env;
  FrameworkOverrides overrides;
};

struct Profile {
  std::string name;
  std::string series;
  std::string description;
  int64_t default_total = 1;
  std::map<std::string, std::string> env;
  FrameworkOverrides overrides;
  std::map<int64_t, ShapeOverrides> shapes;
};

enum class OverrideStyle : uint8_t { kArgparse, kHydra, kEnv };

struct Executor {
  std::string name;  // <provider>/<profile>
  std::string provider;  // cpu, gpu, gpu_distributed
  std::string profile;
  std::string backend;
  std::string config_json;
};

struct Registry {
  int64_t version = 0;  // rises with each reload
  std::map<std::string, Series> series;
  std::map<std::string, Profile> profiles;
  std::map<std::string, Executor> executors;
  std::map<std::string, OverrideStyle> frameworks;
};

}  // namespace tp::core
