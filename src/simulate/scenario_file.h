// SCENARIO.yaml as it is written: what `tpd simulate` replays, and under which policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "config/quota_defaults.h"
#include "config/registry_file.h"
#include "core/run.h"
#include "core/step.h"
#include "decode/type.h"

namespace tp::simulate {

// In place, or the path of a registry.yaml.
struct RegistryEntry {
  decode::Position at;
  std::string path;  // empty: in place
  config::RegistryFile file;
};

struct JobEntry {
  absl::Duration at;
  std::string user;
  decode::Located<std::string> profile;
  int priority = core::kDefaultPriority;
  std::optional<absl::Duration> time_limit;
  absl::Duration runs;
};

struct GenerateEntry {
  int jobs = 0;
  absl::Duration over = absl::Hours(24 * 7);
  int daytime = 0;
  decode::Located<decode::Entries<std::string, int64_t>> users;
  decode::Located<decode::Entries<std::string, int64_t>> shapes;
  decode::Entries<int64_t, int64_t> priorities;
  absl::Duration shortest = absl::Minutes(5);
  decode::Located<absl::Duration> longest{.value = absl::Hours(24), .at = {}};
  int limited = 50;
};

struct SwfEntry {
  std::string path;
  decode::Located<std::string> profile;
  int processors = 1;
};

struct GpuTraceEntry {
  std::string nodes;
  std::string tasks;
};

struct WorkloadEntry {
  std::optional<std::vector<JobEntry>> jobs;
  std::optional<GenerateEntry> generate;
  std::optional<SwfEntry> swf;
  std::optional<GpuTraceEntry> gpu_trace;

  int sources() const {
    return int{jobs.has_value()} + int{generate.has_value()} + int{swf.has_value()} + int{gpu_trace.has_value()};
  }
};

struct PolicyEntry {
  core::Policy scheduling;
  config::QuotaEntry quotas;
  decode::Entries<std::string, config::QuotaEntry> user_quotas;
  decode::Entries<std::string, std::vector<config::WindowEntry>> windows;  // by series
};

struct ScenarioFile {
  int64_t seed = 1;
  std::optional<absl::CivilDay> start;
  absl::TimeZone timezone = absl::UTCTimeZone();
  std::optional<RegistryEntry> registry;
  decode::Located<WorkloadEntry> workload;
  decode::Entries<std::string, PolicyEntry> policies;
};

const decode::Type<ScenarioFile>& ScenarioFileType();

}  // namespace tp::simulate
