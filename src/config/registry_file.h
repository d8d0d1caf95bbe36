// registry.yaml: the hardware. Decoded into what the file says, then built into the core's registry,
// which is complete: every name in it exists, every default shape can be resolved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/type.h"
#include "core/registry.h"

namespace tp::config {

using EnvEntries = Entries<std::string, std::string>;
using OverrideEntries = Entries<std::string, YamlValue>;  // by framework

struct NodeEntry {
  Located<std::string> name;
  std::string address;  // empty: the name
};

struct SeriesEntry {
  std::string description;
  int gpus_per_node = 0;
  std::vector<NodeEntry> nodes;
  bool virtual_cards = false;
  std::optional<Located<std::string>> executor;
  std::optional<Located<std::string>> executor_distributed;
  EnvEntries env;
  EnvEntries locked_env;
  std::string constraint;
};

struct ShapeEntry {
  EnvEntries env;
  OverrideEntries overrides;
};

struct ProfileEntry {
  Located<std::string> series;
  std::string description;
  Located<int64_t> default_shape{.value = 1, .at = {}};
  EnvEntries env;
  OverrideEntries overrides;
  Entries<int64_t, ShapeEntry> shapes;
};

struct RegistryFile {
  Entries<std::string, core::OverrideStyle> frameworks;
  Entries<std::string, SeriesEntry> series;
  Entries<std::string, ProfileEntry> profiles;
};

// The description of registry.yaml.
const Type<RegistryFile>& RegistryFileType();

// `executors` become the registry's. Dangling names, nodes that contradict themselves and shapes that
// cannot be add to `problems`. Needs a file that was decoded without problems.
core::Registry BuildRegistry(const RegistryFile& file, std::map<std::string, core::Executor> executors,
                             Problems& problems);

}  // namespace tp::config
