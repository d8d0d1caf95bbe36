// When waiting steps will start, by playing what is known forward: the planner itself in virtual time, over
// attempts that end by their time limits, windows that open and close, and quota that is released. Pure, and
// no part of any decision: asked by who looks, on a copy of values (DESIGN 6, 12).
//
// What runs mostly ends before its limit, so that an estimate is mostly late. It may also be early: whoever
// is submitted later with a higher priority passes, and a job that fails may be retried.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/fair_share.h"
#include "core/quota.h"
#include "core/registry.h"
#include "core/run.h"
#include "core/step.h"
#include "core/windows.h"
#include "plan/planner.h"

namespace tp::plan {

// Whatever would start later has no estimate.
inline constexpr absl::Duration kEstimateHorizon = absl::Hours(14 * 24);
// Moments at which something ends, opens or starts that are played at most.
inline constexpr int kMostEstimateTurns = 5000;

// A step that waits, holds cards, or is paused by a window.
struct ForecastStep {
  core::StepRef ref;
  std::string run_id;
  std::string owner;
  int32_t priority = core::kDefaultPriority;
  absl::Time submitted;
  std::vector<std::string> profiles;
  std::string avoid_node;
  std::optional<absl::Duration> limit;  // what is left of its own time limit
  // Of one that waits: when the gates of its own open; absent: they are open; infinite: by somebody only.
  std::optional<absl::Time> opens_at;
  bool held = false;  // by its owner or an admin
  // Of one that holds cards.
  std::vector<PoolPlacement> placement;
  absl::Time counted_end;              // as reservations count it, by the default limit too
  std::optional<absl::Time> frees_at;  // absent: nobody knows
};

// Values of one moment.
struct ForecastInput {
  absl::Time now;
  core::Policy policy;
  absl::TimeZone accounting_zone;
  std::shared_ptr<const core::Registry> registry;
  std::vector<ForecastStep> holding;
  std::vector<ForecastStep> waiting;
  std::vector<ForecastStep> paused;  // by a window, and nobody else
  // Of the owners of all of these.
  std::vector<core::QuotaRule> quota_rules;
  std::map<std::string, core::QuotaUse> use;
  core::HeldOpen held_open;
  core::Shares shares;
};

// Everything that holds cards, and of what waits or is paused the steps that are named; those that are
// neither any more are left out. `find` gives a run by its number; null: there is none.
using FindRun = std::function<const core::RunWithSteps*(int64_t)>;
ForecastInput GatherForecast(const Planner& planner, const FindRun& find, const std::vector<core::StepRef>& waiting,
                             const std::vector<core::StepRef>& paused, absl::Time now);

enum class NoEstimate : uint8_t {
  kHeld,
  kDependency,
  kShape,
  kRoom,     // more than there is
  kQuota,    // more than its owner may ever hold, as it is set now
  kStorage,  // over quota, or not measured
  kWindow,   // never opens for long enough
  kNoLimit,  // the one it waits for has no time limit, see `behind`
  kFar,      // beyond the horizon
  kWork,     // too much would have to be played
  kBehind,   // so many are before it that it was not looked at
  kUnknown,  // nobody looked yet
};

struct StartEstimate {
  std::optional<absl::Time> starts_at;
  NoEstimate why_none = NoEstimate::kFar;
  // kNoLimit: a run that runs or will run before, and whose it is.
  std::string behind_run;
  std::string behind_owner;
  bool operator==(const StartEstimate&) const = default;
};

// Of everything in `waiting`. The same input gives the same estimates.
std::map<core::StepRef, StartEstimate> EstimateStarts(const ForecastInput& input);

// `run-12 ahead has no time limit`; without the name where `named` is false.
std::string WhyNoEstimate(const StartEstimate& estimate, bool named);

}  // namespace tp::plan
