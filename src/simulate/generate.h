// A workload drawn from a seed: the same on every machine. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "simulate/workload.h"

namespace tp::simulate {

// What is drawn, and how often it comes compared to the others.
template <typename T>
using Weighted = std::vector<std::pair<T, int64_t>>;

struct Recipe {
  int jobs = 0;
  absl::Duration over;      // from the beginning: whole days
  int daytime_percent = 0;  // of the jobs, submitted from 8 to 20 o'clock; the rest at any time
  Weighted<std::string> users;
  Weighted<std::string> shapes;  // --profile
  Weighted<int32_t> priorities;
  // Of what jobs run, in between every order of magnitude is as likely.
  absl::Duration shortest;
  absl::Duration longest;
  int limited_percent = 0;  // of the jobs, with a time limit of one to three times what they run
};

Workload Generate(const Recipe& recipe, uint64_t seed, absl::Time begins, absl::TimeZone zone);

}  // namespace tp::simulate
