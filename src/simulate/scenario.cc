#include "simulate/scenario.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "config/keys_of.h"
#include "core/resource.h"
#include "decode/yaml_tree.h"
#include "simulate/generate.h"
#include "simulate/gpu_trace.h"
#include "simulate/read_file.h"
#include "simulate/scenario_file.h"
#include "simulate/swf.h"

namespace tp::simulate {
namespace {

using config::RegistryFile;
using decode::Problems;

constexpr absl::CivilDay kDefaultStart(2026, 1, 1);

template <typename T>
absl::StatusOr<T> DecodeFile(const decode::Type<T>& type, const std::string& path) {
  TP_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, decode::kMaxFileBytes));
  Problems problems(path);
  T decoded{};
  if (const auto root = decode::ParseYaml(text, problems)) type.decode(*root, problems, decoded);
  TP_RETURN_IF_ERROR(decode::ToStatus({&problems}));
  return decoded;
}

// Executors run nothing here: those that the file names exist, on a backend that takes any shape.
std::map<std::string, core::Executor> ExecutorsOf(const RegistryFile& file) {
  std::map<std::string, core::Executor> executors;
  const auto add = [&](const std::string& name) {
    const size_t slash = name.find('/');
    executors[name] = {.name = name,
                       .provider = name.substr(0, slash),
                       .profile = name.substr(slash + 1),
                       .backend = "kubernetes_job",
                       .config_json = "{}",
                       .shared = {}};
  };
  add(std::string(core::kDefaultCpuExecutor));
  add(std::string(core::kDefaultGpuExecutor));
  for (const auto& series : file.series) {
    if (series.value.executor) add(series.value.executor->value);
    if (series.value.executor_distributed) add(series.value.executor_distributed->value);
  }
  return executors;
}

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path), problems_(path) {}

  absl::StatusOr<Scenario> Load() {
    TP_ASSIGN_OR_RETURN(file_, DecodeFile(ScenarioFileType(), path_));
    TP_RETURN_IF_ERROR(CheckSources());
    TP_RETURN_IF_ERROR(LoadHardware());
    AddCases();
    TP_RETURN_IF_ERROR(decode::ToStatus({&problems_}));
    TP_RETURN_IF_ERROR(LoadWorkload());
    TP_RETURN_IF_ERROR(decode::ToStatus({&problems_}));
    return std::move(scenario_);
  }

 private:
  absl::Status CheckSources() {
    const WorkloadEntry& workload = file_.workload.value;
    if (workload.sources() != 1) {
      problems_.Add(file_.workload.at, fmt::format("a workload has exactly one of jobs, generate, swf and gpu_trace; "
                                                   "here are {}",
                                                   workload.sources()));
    } else if (workload.gpu_trace && file_.registry) {
      problems_.Add(file_.registry->at, "the nodes of gpu_trace are the registry: leave this one out");
    } else if (!workload.gpu_trace && !file_.registry) {
      problems_.Add(file_.workload.at, "there is no registry: name the hardware that these jobs run on");
    }
    return decode::ToStatus({&problems_});
  }

  // --- Hardware -----------------------------------------------------------------------------------

  absl::Status LoadHardware() {
    if (file_.workload.value.gpu_trace) return LoadGpuTrace(*file_.workload.value.gpu_trace);
    const RegistryEntry& entry = *file_.registry;
    std::string path = path_;
    hardware_ = entry.file;
    if (!entry.path.empty()) {
      path = Beside(path_, entry.path);
      TP_ASSIGN_OR_RETURN(hardware_, DecodeFile(config::RegistryFileType(), path));
    }
    Problems problems(path);
    config::BuildRegistry(hardware_, ExecutorsOf(hardware_), problems);
    for (const auto& series : hardware_.series) {
      if (!series.value.nodes.empty()) continue;
      problems.Add(series.at, fmt::format("series {} has no `nodes`: a simulation places jobs itself", series.key));
    }
    return decode::ToStatus({&problems});
  }

  absl::Status LoadGpuTrace(const GpuTraceEntry& entry) {
    const std::string nodes_path = Beside(path_, entry.nodes);
    const std::string tasks_path = Beside(path_, entry.tasks);
    TP_ASSIGN_OR_RETURN(const std::string nodes, ReadWhole(nodes_path, kMaxWorkloadBytes));
    TP_ASSIGN_OR_RETURN(const std::string tasks, ReadWhole(tasks_path, kMaxWorkloadBytes));
    Problems nodes_problems(nodes_path);
    Problems tasks_problems(tasks_path);
    GpuTrace trace = ReadGpuTrace(nodes, nodes_problems, tasks, tasks_problems);
    hardware_ = std::move(trace.registry);
    scenario_.workload = std::move(trace.workload);
    return decode::ToStatus({&nodes_problems, &tasks_problems});
  }

  // --- Policies -----------------------------------------------------------------------------------

  void AddCases() {
    if (file_.policies.empty()) file_.policies.push_back({.key = "default", .at = {}, .value = {}});
    for (const auto& policy : file_.policies) AddCase(policy.key, policy.value);
  }

  void AddCase(const std::string& name, const PolicyEntry& entry) {
    const RegistryFile file = WithWindows(entry);
    core::Registry registry = config::BuildRegistry(file, ExecutorsOf(file), problems_);
    registry.quota_defaults = config::BuildQuotaDefaults(entry.quotas, registry, problems_);
    PolicyCase& rules = scenario_.cases.emplace_back();
    rules.name = name;
    rules.policy = entry.scheduling;
    for (const auto& user : entry.user_quotas) {
      core::QuotaRule& rule = rules.user_quotas.emplace_back();
      rule.id = static_cast<int64_t>(rules.user_quotas.size());
      rule.user = user.key;
      rule.limits = config::BuildQuotaDefaults(user.value, registry, problems_);
    }
    rules.registry = std::make_shared<const core::Registry>(std::move(registry));
  }

  RegistryFile WithWindows(const PolicyEntry& entry) {
    RegistryFile file = hardware_;
    for (const auto& windows : entry.windows) {
      const auto series =
          std::find_if(file.series.begin(), file.series.end(), [&](const auto& one) { return one.key == windows.key; });
      if (series == file.series.end()) {
        std::vector<std::string> names;
        for (const auto& one : file.series) names.push_back(one.key);
        decode::AddUnknown(windows.at, "series", windows.key, "", names, problems_);
      } else {
        series->value.windows = windows.value;
      }
    }
    return file;
  }

  // --- Workload -----------------------------------------------------------------------------------

  const core::Registry& registry() const { return *scenario_.cases.front().registry; }

  absl::Time BeginOn(absl::CivilDay day) const { return absl::FromCivil(day, file_.timezone); }

  absl::Status LoadWorkload() {
    const WorkloadEntry& entry = file_.workload.value;
    scenario_.zone = file_.timezone;
    scenario_.begins = BeginOn(file_.start.value_or(kDefaultStart));
    if (entry.jobs) AddJobs(*entry.jobs);
    if (entry.generate) AddGenerated(*entry.generate);
    if (entry.swf) TP_RETURN_IF_ERROR(LoadSwf(*entry.swf));
    if (!file_.start && scenario_.workload.begins) scenario_.begins = *scenario_.workload.begins;
    return absl::OkStatus();
  }

  void CheckFlag(decode::Position at, const std::string& flag) {
    const absl::Status status = core::ResolveShape(registry(), {flag}).status();
    if (!status.ok()) problems_.Add(at, std::string(Message(status)));
  }

  void AddJobs(const std::vector<JobEntry>& entries) {
    for (const JobEntry& entry : entries) {
      CheckFlag(entry.profile.at, entry.profile.value);
      Submission& job = scenario_.workload.jobs.emplace_back();
      job.at = entry.at;
      job.user = entry.user;
      job.profile = entry.profile.value;
      job.priority = entry.priority;
      job.time_limit = entry.time_limit;
      job.runs = entry.runs;
    }
  }

  void AddGenerated(const GenerateEntry& entry) {
    Recipe recipe;
    recipe.jobs = entry.jobs;
    recipe.over = entry.over;
    recipe.daytime_percent = entry.daytime;
    recipe.shortest = entry.shortest;
    recipe.longest = entry.longest.value;
    recipe.limited_percent = entry.limited;
    for (const auto& user : entry.users.value) recipe.users.emplace_back(user.key, user.value);
    for (const auto& shape : entry.shapes.value) {
      CheckFlag(shape.at, shape.key);
      recipe.shapes.emplace_back(shape.key, shape.value);
    }
    for (const auto& one : entry.priorities) recipe.priorities.emplace_back(static_cast<int32_t>(one.key), one.value);
    if (recipe.priorities.empty()) recipe.priorities.emplace_back(core::kDefaultPriority, 1);
    if (recipe.users.empty()) problems_.Add(entry.users.at, "nobody submits: name a user");
    if (recipe.shapes.empty()) problems_.Add(entry.shapes.at, "nothing is asked for: name a --profile");
    if (recipe.longest < recipe.shortest) problems_.Add(entry.longest.at, "longest is shorter than shortest");
    if (problems_.any()) return;
    scenario_.workload = Generate(recipe, static_cast<uint64_t>(file_.seed), scenario_.begins, scenario_.zone);
  }

  absl::Status LoadSwf(const SwfEntry& entry) {
    const auto profile = registry().profiles.find(entry.profile.value);
    if (profile == registry().profiles.end()) {
      decode::AddUnknown(entry.profile.at, "profile", entry.profile.value, "", config::KeysOf(registry().profiles),
                         problems_);
      return absl::OkStatus();
    }
    const SwfShape shape{.profile = entry.profile.value,
                         .processors = entry.processors,
                         .gpus_per_node = registry().series.at(profile->second.series).gpus_per_node};
    const std::string path = Beside(path_, entry.path);
    TP_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, kMaxWorkloadBytes));
    Problems problems(path);
    scenario_.workload = ReadSwf(text, shape, problems);
    return decode::ToStatus({&problems});
  }

  const std::string& path_;
  Problems problems_;
  ScenarioFile file_;
  RegistryFile hardware_;
  Scenario scenario_;
};

}  // namespace

absl::StatusOr<Scenario> LoadScenario(const std::string& path) { return Loader(path).Load(); }

}  // namespace tp::simulate
