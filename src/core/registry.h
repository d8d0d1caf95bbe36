// The hardware registry as an immutable value (DESIGN 3), the way the loop and the resource flag use
// it. Filled by src/config from registry.yaml and tpd.yaml, which guarantees what is said here; the
// core reports a registry that breaks a guarantee and never relies on one for safety. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/notice.h"
#include "core/quota.h"
#include "tp/launch.h"

namespace tp::core {

struct Node {
  std::string name;
  std::string address;  // how ranks reach it
  bool operator==(const Node&) const = default;
};

// From a wall-clock minute of a weekday to one of the same day, or of the next where it is not later.
struct OpenInterval {
  int weekday = 0;  // 0: Monday
  int from_minute = 0;
  int to_minute = 0;  // up to 1440, the end of the day
  auto operator<=>(const OpenInterval&) const = default;
};

// When jobs of a series may run. Checked when read; the WINDOW gate does not look at it yet.
struct Window {
  std::vector<std::string> profiles;  // only for jobs of these; empty: all of the series
  absl::TimeZone zone = absl::UTCTimeZone();
  std::vector<OpenInterval> open;  // sorted
  absl::Duration grace = absl::Minutes(5);
  absl::Duration min_remaining = absl::Minutes(30);
  bool operator==(const Window&) const = default;
};

struct Series {
  std::string name;
  std::string description;
  int gpus_per_node = 0;             // 0: a cpu series, totals count nodes
  std::vector<Node> nodes;           // empty: the engine knows them
  bool virtual_cards = false;        // declared, not looked for (no accelerator needed)
  std::string executor;              // name of an Executor
  std::string executor_distributed;  // for several nodes or pools; empty: `executor`
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> locked_env;
  RankLimits per_card;                               // on a cpu series per node
  std::string constraint;                            // slurm
  std::map<std::string, std::string> node_selector;  // kubernetes, over the executor's
  std::vector<Window> windows;
  bool operator==(const Series&) const = default;
};

// Overrides of one framework.
struct FrameworkOverride {
  std::string json;  // an object
  std::string text;  // the same in the style the registry names, for TP_OVERRIDES_<FRAMEWORK>
  bool operator==(const FrameworkOverride&) const = default;
};
using FrameworkOverrides = std::map<std::string, FrameworkOverride>;  // by framework

// What a profile gives to a job of one total. Complete: the base is already merged into it.
struct ShapeOverrides {
  std::map<std::string, std::string> env;
  FrameworkOverrides overrides;
  bool operator==(const ShapeOverrides&) const = default;
};

struct Profile {
  std::string name;
  std::string series;
  std::string description;
  int64_t default_total = 1;
  ShapeOverrides base;                       // for a total that `shapes` does not hold
  std::map<int64_t, ShapeOverrides> shapes;  // by total
  bool operator==(const Profile&) const = default;
};

enum class OverrideStyle : uint8_t { kArgparse, kHydra, kEnv };

struct Executor {
  std::string name;      // <provider>/<profile>
  std::string provider;  // cpu, gpu, gpu_distributed
  std::string profile;
  std::string backend;
  std::string config_json;  // an object; jobs.executor_defaults of the backend merged in
  // What the executors of several pools must agree on, from the config: namespace, storage, queue,
  // account, launcher. As JSON text; only what is set.
  std::map<std::string, std::string> shared;
  bool operator==(const Executor&) const = default;
};

// The profile of a step without --profile: the default cpu executor.
inline constexpr std::string_view kDefaultProfile = "cpu";
inline constexpr std::string_view kDefaultCpuExecutor = "cpu/default";
inline constexpr std::string_view kDefaultGpuExecutor = "gpu/default";

// A step that everybody may name in --then (DESIGN 8): what it runs, and on what.
struct Recipe {
  std::string description;
  std::vector<std::string> argv;
  std::vector<std::string> profiles;  // as --profile; empty: the default cpu executor
  std::string image;
  std::map<std::string, std::string> env;
  std::optional<absl::Duration> time_limit;
  bool operator==(const Recipe&) const = default;
};

// What admins keep in files and what comes into force as one: the hardware, what users get of it, and whom they may
// have told.
struct Registry {
  int64_t version = 0;  // rises with each reload
  QuotaLimits quota_defaults;
  std::map<std::string, Series> series;
  std::map<std::string, Profile> profiles;
  std::map<std::string, Executor> executors;
  std::map<std::string, OverrideStyle> frameworks;
  std::map<std::string, Recipe> recipes;
  Receivers receivers;
  bool operator==(const Registry&) const = default;
};

}  // namespace tp::core
