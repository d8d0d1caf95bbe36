// The planner's twin: the sentences of DESIGN 6 in the plainest code there is, with sums, cards and
// reservations of its own and no memory between two looks. Slow on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "core/ids.h"
#include "tp/launch.h"

namespace tp::plan {

struct TwinPool {
  std::string series;
  int nodes = 0;
  int gpus = 0;  // on each; 0: a cpu node
};

struct TwinJob {
  core::StepRef ref;
  std::string owner;
  std::vector<TwinPool> pools;
  int priority = 50;
  absl::Time submitted;
  absl::Duration limit;  // what is left of it, or the default
  bool has_limit = false;
  std::string avoid;
  bool queued = true;
  bool held = false;
  std::optional<absl::Time> not_before;
  // While it is live.
  std::vector<std::pair<std::string, int>> cards;  // node, index; -1: the node itself
  absl::Time ends;
  std::optional<absl::Time> metered_from;

  bool live() const { return !cards.empty(); }
};

struct TwinQuota {
  std::optional<int> gpus;
  std::map<std::string, int> series;
  std::optional<int> jobs;
  std::optional<int> gpu_hours;
};

// An interval that was settled, or a correction of one.
struct TwinUse {
  std::string owner;
  absl::CivilMonth month;
  absl::Time ended;  // on the hour
  int64_t gpu_ms = 0;
};

struct TwinWorld {
  std::map<std::string, std::vector<std::string>> series_nodes;  // in order
  std::map<std::string, int> node_cards;
  std::map<std::string, TwinQuota> quotas;  // by user; none: no limit
  std::string windowed_series;              // open from 8 to 20 o'clock, UTC
  std::optional<absl::Time> held_open_until;
  std::map<core::StepRef, TwinJob> jobs;
  std::vector<TwinUse> used;
  bool fair_share = false;
  absl::Time metered_to;  // what runs counts up to then
};

struct TwinStart {
  core::StepRef ref;
  std::vector<std::pair<std::string, int>> cards;
  bool operator==(const TwinStart&) const = default;
};

// What starts at that moment, in order, until nothing does. Starts are put into the world.
std::vector<TwinStart> TwinStarts(TwinWorld& world, absl::Time now);

// Whether the job holds what its owner may not hold.
bool TwinOverQuota(const TwinWorld& world, core::StepRef ref);

}  // namespace tp::plan
