// Figures for people and for programs: for the same figures the same bytes. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "simulate/figures.h"

namespace tp::simulate {

struct Report {
  absl::TimeZone zone;
  std::vector<std::string> notes;  // of the workload
  std::vector<Figures> policies;   // at least one
};

// Tables in which the policies stand below each other.
std::string TextReport(const Report& report);

// One object; durations in whole milliseconds, times as seconds since 1970.
std::string JsonReport(const Report& report);

}  // namespace tp::simulate
