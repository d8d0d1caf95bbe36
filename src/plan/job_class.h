// Queued steps that no gate tells apart: one of them is judged for all (DESIGN 12). Values only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/gates.h"
#include "core/registry.h"
#include "core/run.h"
#include "core/step.h"

namespace tp::plan {

// What --profile flags come to under the registry in force.
struct Shape {
  std::optional<core::ResolvedShape> resolved;
  std::string why_not;           // where it does not resolve
  std::string size;              // equal for all that need the same room
  std::set<std::string> series;  // of its pools
};
std::shared_ptr<const Shape> MakeShape(const core::Registry& registry, const std::vector<std::string>& profiles);

struct ClassKey {
  std::string owner;
  std::vector<std::string> profiles;
  int32_t priority = 0;
  std::optional<absl::Duration> limit;  // what is left of it
  std::string avoid_node;
  bool operator<(const ClassKey& other) const {
    return std::tie(owner, profiles, priority, limit, avoid_node) <
           std::tie(other.owner, other.profiles, other.priority, other.limit, other.avoid_node);
  }
};
ClassKey KeyOf(const core::RunWithSteps& run, const core::Step& step);

using ClassId = int64_t;
using Waiting = std::pair<absl::Time, core::StepRef>;  // submitted

enum class Place : uint8_t { kNowhere, kShape, kWindow, kQuota, kRoom };

struct JobClass {
  ClassId id = 0;
  ClassKey key;
  std::shared_ptr<const Shape> shape;
  std::set<Waiting> ready;      // whose own gates are open, in order
  std::set<core::StepRef> all;  // and those whose are not
  Place place = Place::kNowhere;
  std::optional<core::GateKind> closed;  // the gate at which it waits
  absl::Time closed_since;
  std::optional<absl::Time> wakes_at;  // kWindow
};

}  // namespace tp::plan
