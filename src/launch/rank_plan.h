// What the runner is told (docs/launch-contract.md): the words of `tp-rank run`, the plan that `tp-rank launch`
// reads. For every backend. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tp/launch.h"

namespace tp::launch {

struct PlanOptions {
  std::string cgroup_parent;                    // of all attempts; empty: no cgroups
  std::map<std::string, std::string> base_env;  // of every job, under the spec's own variables
};

// INVALID_ARGUMENT names the field that a process of Linux cannot be given.
absl::Status CheckSpec(const LaunchSpec& spec);

// Where a rank's processes are put; empty without cgroups.
std::string CgroupOfAttempt(const std::string& cgroup_parent, const std::string& key);

// The words after `tp-rank run`.
std::vector<std::string> RunArguments(const LaunchSpec& spec, const RankLaunch& rank, const PlanOptions& options);

// The plan's bytes. `spec` passed CheckSpec.
std::string RenderPlan(const LaunchSpec& spec, const PlanOptions& options);

// The same for people: one string a line, secret-looking values masked.
std::string DescribePlan(const LaunchSpec& spec, const PlanOptions& options);

}  // namespace tp::launch
