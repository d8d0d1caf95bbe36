// A workload replayed through the planner in virtual time: the same decisions as in tpd, over jobs of one
// step that do nothing but last. A job that starts runs at once; a window that closes pauses it at once, and
// it goes on from there. Pure; the same input gives the same outcome.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/gates.h"
#include "core/quota.h"
#include "core/registry.h"
#include "core/step.h"
#include "plan/planner.h"
#include "simulate/workload.h"

namespace tp::simulate {

// Under which rules the workload is replayed.
struct PolicyCase {
  std::string name;
  core::Policy policy;
  std::shared_ptr<const core::Registry> registry;  // with windows and quota defaults of this case
  std::vector<core::QuotaRule> user_quotas;
};

using GateTimes = std::array<absl::Duration, core::kGateKindCount>;

struct JobOutcome {
  std::string size;                   // `h200:16`, or the flag where it does not resolve
  std::string refused;                // why it was never queued; empty: it was
  std::optional<absl::Time> started;  // for the first time
  std::optional<absl::Time> ended;
  bool over_limit = false;  // ended by its time limit
  int32_t pauses = 0;       // by a window
  int64_t gpu_ms = 0;
  GateTimes waited{};  // queued time, after a pause too, by the gate at which it waited
};

struct Outcome {
  absl::Time begins;
  absl::Time ends;                         // of the last job
  std::vector<JobOutcome> jobs;            // as in the workload
  std::map<std::string, int64_t> busy_ms;  // by series: cards x time, on cpu series nodes x time
  int64_t events = 0;                      // submissions, ends, pauses and resumes
  plan::PlannerCounters planner;
};

Outcome Replay(const Workload& workload, const PolicyCase& rules, absl::Time begins, absl::TimeZone accounting_zone);

}  // namespace tp::simulate
