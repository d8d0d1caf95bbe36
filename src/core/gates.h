// Why a queued step may not launch now (DESIGN 6). All gates are evaluated together; the same functions
// serve the planner, which asks for the first closed one, and every screen, which shows all. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/placement.h"
#include "core/quota.h"
#include "core/reservation.h"
#include "core/run.h"
#include "core/step.h"
#include "core/windows.h"

namespace tp::core {

enum class GateKind : uint8_t {
  kDependency,
  kHeld,
  kCooldown,
  kWindow,
  kQuotaGpus,
  kQuotaSeries,
  kQuotaJobs,
  kQuotaGpuHours,
  kQuotaStorage,
  kCapacity,
  kOrder,
  kBackend,
};
inline constexpr int kGateKindCount = 12;
inline constexpr std::array<std::string_view, kGateKindCount> kGateNames = {
    "DEPENDENCY",      "HELD",          "COOLDOWN", "WINDOW", "QUOTA_GPUS", "QUOTA_SERIES", "QUOTA_JOBS",
    "QUOTA_GPU_HOURS", "QUOTA_STORAGE", "CAPACITY", "ORDER",  "BACKEND"};
constexpr std::string_view Name(GateKind kind) { return kGateNames[static_cast<size_t>(kind)]; }

struct GateVerdict {
  GateKind gate = GateKind::kCapacity;
  std::string sentence;  // with numbers, and what frees it
  std::optional<absl::Time> opens_at;
  std::optional<absl::Time> since;
  bool operator==(const GateVerdict&) const = default;
};

// What gates look at besides the run: values of one moment. Everything outlives the call.
struct Situation {
  const Policy& policy;
  const Capacity& capacity;
  std::vector<const Reservation*> reservations;  // of steps ahead of this one
  QuotaLimits limits;                            // of the run's owner
  QuotaUse use;                                  // likewise
  absl::Time month_ends;                         // of the accounting zone
  absl::TimeZone accounting_zone;
  Schedule schedule;      // of the shape
  WindowStanding window;  // of `schedule`
  absl::Time now;
};

struct GateInput {
  const RunWithSteps& run;
  const Step& step;
  const ResolvedShape* shape = nullptr;  // null: it does not resolve, see step.hold.shape
  const Situation& situation;
};

// Every gate that is closed, in the order of GateKind but those of the step itself first; empty: the step
// may launch.
std::vector<GateVerdict> ClosedGates(const GateInput& input);

// --- The parts that the planner asks for one by one ----------------------------------------------------

// Gates of the step itself (DEPENDENCY, HELD by people, COOLDOWN, BACKEND): when they open by themselves;
// infinite: by an event of its run only. Nothing: they are open.
std::optional<absl::Time> OwnGatesOpenAt(const RunWithSteps& run, const Step& step, absl::Time now);

// Whether a job with so much left of its time limit is let in now.
bool WindowOpen(const Schedule& schedule, const WindowStanding& standing, std::optional<absl::Duration> remaining_limit,
                absl::Time now);

// The first quota that has no place for the shape.
std::optional<GateKind> ClosedQuota(const ResolvedShape& shape, const QuotaLimits& limits, const QuotaUse& use);

// Whether the step waits for another of its run, or for another run: nothing, waiting, or never to run.
enum class DependencyState : uint8_t { kMet, kWaiting, kImpossible };
DependencyState Dependency(const RunWithSteps& run, const Step& step);
// By the state of the step that it waits for.
DependencyState Dependency(AfterWhen when, JobState other);

// A sentence where that is impossible; empty: it is not.
std::string WhyNever(const RunWithSteps& run, const Step& step);

}  // namespace tp::core
