// What `tp-rank launch` reads (docs/launch-contract.md). Pure.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "tp/launch.h"

namespace tp::local {

struct PlanOptions {
  std::string cgroup_parent;                    // of all attempts; empty: no cgroups
  std::map<std::string, std::string> base_env;  // of every job, under the spec's own variables
};

// INVALID_ARGUMENT names the field that a process of this machine cannot be given.
absl::Status CheckSpec(const LaunchSpec& spec);

// Where a rank's processes are put; empty without cgroups.
std::string CgroupOfAttempt(const std::string& cgroup_parent, const std::string& key);

// The plan's bytes. `spec` passed CheckSpec.
std::string RenderPlan(const LaunchSpec& spec, const PlanOptions& options);

// The same for people: one string a line, secret-looking values masked.
std::string DescribePlan(const LaunchSpec& spec, const PlanOptions& options);

}  // namespace tp::local
