// registry.yaml: the hardware. Decoded into what the file says, then built into the core's registry,
// which is complete: every name in it exists, every default shape can be resolved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/registry.h"
#include "decode/type.h"

namespace tp::config {

using EnvEntries = decode::Entries<std::string, std::string>;
using OverrideEntries = decode::Entries<std::string, decode::YamlValue>;  // by framework

struct NodeEntry {
  decode::Located<std::string> name;
  std::string address;  // empty: the name
};

struct WindowEntry {
  std::vector<decode::Located<std::string>> profiles;
  absl::TimeZone timezone = absl::UTCTimeZone();
  std::vector<core::OpenInterval> open;
  absl::Duration grace = core::Window{}.grace;
  absl::Duration min_remaining = core::Window{}.min_remaining;
};

struct SeriesEntry {
  std::string description;
  int gpus_per_node = 0;
  std::vector<NodeEntry> nodes;
  bool virtual_cards = false;
  std::optional<decode::Located<std::string>> executor;
  std::optional<decode::Located<std::string>> executor_distributed;
  EnvEntries env;
  EnvEntries locked_env;
  decode::Located<RankLimits> per_card;
  std::string constraint;
  decode::Entries<std::string, std::string> node_selector;
  std::vector<WindowEntry> windows;
};

struct ShapeEntry {
  EnvEntries env;
  OverrideEntries overrides;
};

struct ProfileEntry {
  decode::Located<std::string> series;
  std::string description;
  decode::Located<int64_t> default_shape{.value = 1, .at = {}};
  EnvEntries env;
  OverrideEntries overrides;
  decode::Entries<int64_t, ShapeEntry> shapes;
};

struct RecipeEntry {
  std::string description;
  std::vector<std::string> command;
  decode::Located<std::vector<std::string>> profiles;
  std::string image;
  EnvEntries env;
  std::optional<absl::Duration> time_limit;
};

struct RegistryFile {
  decode::Entries<std::string, core::OverrideStyle> frameworks;
  decode::Entries<std::string, SeriesEntry> series;
  decode::Entries<std::string, ProfileEntry> profiles;
  decode::Entries<std::string, RecipeEntry> recipes;
};

// The description of registry.yaml, and of one window in it.
const decode::Type<RegistryFile>& RegistryFileType();
decode::Type<WindowEntry> WindowType();

// `executors` become the registry's. Dangling names, nodes that contradict themselves and shapes that
// cannot be add to `problems`. Needs a file that was decoded without problems.
core::Registry BuildRegistry(const RegistryFile& file, std::map<std::string, core::Executor> executors,
                             decode::Problems& problems);

}  // namespace tp::config
