// Why a queued step may not launch now (DESIGN 6). All gates are evaluated together; the same verdict
// serves the planner and every screen. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/placement.h"
#include "core/run.h"
#include "core/step.h"

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
  bool operator==(const GateVerdict&) const = default;
};

struct GateInput {
  const RunWithSteps& run;
  const Step& step;
  const ResolvedShape* shape = nullptr;  // null: it does not resolve, see step.hold.shape
  const Capacity& capacity;
  absl::Time now;
};

// Every gate that is closed; empty: the step may launch.
std::vector<GateVerdict> ClosedGates(const GateInput& input);

// Whether the step waits for another of its run: nothing, waiting, or never to run.
enum class DependencyState : uint8_t { kMet, kWaiting, kImpossible };
DependencyState Dependency(const RunWithSteps& run, const Step& step);

}  // namespace tp::core
