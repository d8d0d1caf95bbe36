#include "simulate/scenario_file.h"

#include <limits>

#include "base/strings.h"
#include "config/order_keys.h"
#include "config/scalar_types.h"

namespace tp::simulate {
namespace {

using decode::AddMismatch;
using decode::At;
using decode::DurationBetween;
using decode::Integer;
using decode::Key;
using decode::ListOf;
using decode::MapOf;
using decode::Name;
using decode::Optional;
using decode::Problems;
using decode::Record;
using decode::RequiredKey;
using decode::SmallInteger;
using decode::Text;
using decode::Type;
using decode::YamlValue;

constexpr absl::Duration kLongest = absl::Hours(24 * 3650);
constexpr int kMostJobs = 1'000'000;

Type<absl::CivilDay> DayType() {
  Type<absl::CivilDay> type;
  type.words = "a day such as 2026-01-31";
  type.decode = [words = type.words](const YamlValue& value, Problems& problems, absl::CivilDay& out) {
    const bool scalar = value.kind == YamlValue::Kind::kScalar;
    if (scalar && value.text.size() == 10 && absl::ParseCivilTime(ToAbsl(value.text), &out) && out.year() >= 1970) {
      return true;
    }
    AddMismatch(value, words, problems);
    return false;
  };
  return type;
}

Type<std::string> PathType() { return Text("path, from the scenario's directory"); }

Type<RegistryEntry> RegistryType() {
  Type<RegistryEntry> type;
  type.words = "registry.yaml in place, or its path";
  type.decode = [words = type.words](const YamlValue& value, Problems& problems, RegistryEntry& out) {
    out.at = value.at;
    if (value.kind == YamlValue::Kind::kMap) return config::RegistryFileType().decode(value, problems, out.file);
    if (value.kind == YamlValue::Kind::kScalar) return PathType().decode(value, problems, out.path);
    AddMismatch(value, words, problems);
    return false;
  };
  return type;
}

Type<int> PriorityType() { return SmallInteger(0, core::kMaxPriority); }
Type<int> PercentType() { return SmallInteger(0, 100); }
Type<decode::Located<std::string>> ProfileFlagType() { return At(Text("--profile, such as h200:16")); }
Type<absl::Duration> RunType() { return DurationBetween(absl::ZeroDuration(), kLongest); }
Type<absl::Duration> LimitType() { return DurationBetween(absl::Seconds(1), kLongest); }

Type<JobEntry> JobType() {
  return Record<JobEntry>(
      "a job", {RequiredKey("at", &JobEntry::at, RunType(), "When it is submitted, from the start."),
                RequiredKey("user", &JobEntry::user, Name("user"), "Whose it is."),
                RequiredKey("profile", &JobEntry::profile, ProfileFlagType(), "What it asks for."),
                RequiredKey("runs", &JobEntry::runs, RunType(), "How long it runs with its cards."),
                Key("time_limit", &JobEntry::time_limit, Optional(LimitType()), "What ends it. Default: nothing does."),
                Key("priority", &JobEntry::priority, PriorityType(), "The higher ones go first.")});
}

Type<GenerateEntry> GenerateType() {
  const auto weight = Integer(1, 1'000'000);
  return Record<GenerateEntry>(
      "generate",
      {RequiredKey("jobs", &GenerateEntry::jobs, SmallInteger(1, kMostJobs), "How many."),
       Key("over", &GenerateEntry::over, DurationBetween(absl::Hours(24), kLongest), "In how many days."),
       Key("daytime", &GenerateEntry::daytime, PercentType(),
           "Percentage that is submitted from 8 to 20 o'clock; the rest comes at any time."),
       RequiredKey("users", &GenerateEntry::users, At(MapOf(Name("user"), weight, "mapping of user to weight")),
                   "Who submits, and how often compared to the others."),
       RequiredKey("shapes", &GenerateEntry::shapes,
                   At(MapOf(decode::Scalar("--profile"), weight, "mapping of --profile to weight")),
                   "What is asked for, and how often compared to the others."),
       Key("priorities", &GenerateEntry::priorities,
           MapOf(Integer(0, core::kMaxPriority), weight, "mapping of priority to weight"), "Default: 50 for all."),
       Key("shortest", &GenerateEntry::shortest, LimitType(), "Of what jobs run."),
       Key("longest", &GenerateEntry::longest, At(LimitType()),
           "Likewise; in between every order of magnitude is as likely."),
       Key("limited", &GenerateEntry::limited, PercentType(),
           "Percentage with a time limit, of one to three times what they run.")});
}

Type<SwfEntry> SwfType() {
  return Record<SwfEntry>(
      "swf", {RequiredKey("path", &SwfEntry::path, PathType(), "A file in the Standard Workload Format."),
              RequiredKey("profile", &SwfEntry::profile, At(Name("profile")), "What all of its jobs ask for."),
              Key("processors", &SwfEntry::processors, SmallInteger(1, 1'000'000),
                  "Processors of the file that one card (on a cpu series one node) stands for; rounded up.")});
}

Type<GpuTraceEntry> GpuTraceType() {
  return Record<GpuTraceEntry>("gpu_trace",
                               {RequiredKey("nodes", &GpuTraceEntry::nodes, PathType(), "Its table of nodes (csv)."),
                                RequiredKey("tasks", &GpuTraceEntry::tasks, PathType(), "Its table of tasks (csv).")});
}

Type<WorkloadEntry> WorkloadType() {
  return Record<WorkloadEntry>(
      "workload", {Key("jobs", &WorkloadEntry::jobs, Optional(ListOf(JobType(), "list of jobs")), "One by one."),
                   Key("generate", &WorkloadEntry::generate, Optional(GenerateType()), "Drawn from the seed."),
                   Key("swf", &WorkloadEntry::swf, Optional(SwfType()), "From the Parallel Workloads Archive."),
                   Key("gpu_trace", &WorkloadEntry::gpu_trace, Optional(GpuTraceType()),
                       "Nodes and tasks of a GPU cluster; they are the registry too.")});
}

Type<PolicyEntry> PolicyType() {
  const auto windows = ListOf(config::WindowType(), "list of windows");
  return Record<PolicyEntry>(
      "a policy", {Key("scheduling", &PolicyEntry::scheduling, Record<core::Policy>("scheduling", config::OrderKeys()),
                       "As in tpd.yaml: who starts next."),
                   Key("quotas", &PolicyEntry::quotas, config::QuotaType(), "As in tpd.yaml: what each user may hold."),
                   Key("user_quotas", &PolicyEntry::user_quotas,
                       MapOf(Name("user"), config::QuotaType(), "mapping of user to quotas"),
                       "What single users may hold instead."),
                   Key("windows", &PolicyEntry::windows, MapOf(Name("series"), windows, "mapping of series to windows"),
                       "In place of those in the registry; an empty list: always open.")});
}

Type<ScenarioFile> MakeScenarioFileType() {
  return Record<ScenarioFile>(
      "a scenario",
      {Key("seed", &ScenarioFile::seed, Integer(0, std::numeric_limits<int64_t>::max()), "What `generate` draws from."),
       Key("start", &ScenarioFile::start, Optional(DayType()),
           "The day on which it begins, at midnight. Default: what the workload says, else 2026-01-01."),
       Key("timezone", &ScenarioFile::timezone, config::TimeZone(),
           "Of the start, of daytime, and of the months that GPU-hours are counted by."),
       Key("registry", &ScenarioFile::registry, Optional(RegistryType()), "The hardware."),
       RequiredKey("workload", &ScenarioFile::workload, At(WorkloadType()), "What is submitted: one of its keys."),
       Key("policies", &ScenarioFile::policies, MapOf(Name("policy"), PolicyType(), "mapping of name to a policy"),
           "Each is replayed by itself. Default: one, with tpd's defaults.")});
}

}  // namespace

const Type<ScenarioFile>& ScenarioFileType() {
  static const Type<ScenarioFile> type = MakeScenarioFileType();
  return type;
}

}  // namespace tp::simulate
