// What a replay comes to in numbers. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/gates.h"
#include "simulate/replay.h"
#include "simulate/workload.h"

namespace tp::simulate {

// Of durations; the median and the 95th percentile are one of them (nearest rank). All zero without any.
struct Spread {
  int64_t count = 0;
  absl::Duration sum;
  absl::Duration mean;
  absl::Duration median;
  absl::Duration p95;
  absl::Duration max;
};
Spread SpreadOf(std::vector<absl::Duration> durations);

struct SeriesUse {
  int64_t units = 0;  // cards, on a cpu series nodes
  int64_t busy_ms = 0;
  double share = 0;  // of the units, from the first submission to the last end
};

struct Figures {
  std::string policy;
  absl::Time begins;
  absl::Time ends;
  int64_t submitted = 0;
  std::map<std::string, int64_t> refused;  // by reason
  int64_t ended = 0;
  int64_t over_limit = 0;     // of those that ended
  int64_t never_started = 0;  // at any time
  int64_t pauses = 0;

  // From submission to the first start, of those that started.
  Spread wait;
  std::map<std::string, Spread> wait_by_user;
  std::map<std::string, Spread> wait_by_size;

  std::map<std::string, SeriesUse> series;
  std::map<core::GateKind, Spread> gates;  // of the jobs that waited there
  std::map<std::string, int64_t> gpu_ms_by_user;
  int64_t events = 0;
  plan::PlannerCounters planner;

  int64_t refused_count() const;
};

Figures FiguresOf(const Workload& workload, const PolicyCase& rules, const Outcome& outcome);

}  // namespace tp::simulate
