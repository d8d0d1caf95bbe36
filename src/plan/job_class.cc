#include "plan/job_class.h"

#include <fmt/format.h>

#include "base/status.h"
#include "core/reservation.h"
#include "core/resource.h"

namespace tp::plan {

std::shared_ptr<const Shape> MakeShape(const core::Registry& registry, const std::vector<std::string>& profiles) {
  auto shape = std::make_shared<Shape>();
  absl::StatusOr<core::ResolvedShape> resolved = core::ResolveShape(registry, profiles);
  if (!resolved.ok()) {
    shape->why_not = std::string(Message(resolved.status()));
    return shape;
  }
  shape->resolved = *std::move(resolved);
  for (const core::PoolShape& pool : shape->resolved->pools) {
    shape->series.insert(pool.series);
    shape->size += fmt::format("{}:{}x{}|", pool.series, pool.nodes, pool.gpus_per_node);
  }
  return shape;
}

ClassKey KeyOf(const core::RunWithSteps& run, const core::Step& step) {
  return {.owner = run.run.owner,
          .profiles = step.spec.profiles,
          .priority = run.run.priority,
          .limit = core::RemainingOwnLimit(step),
          .avoid_node = step.avoid_node};
}

}  // namespace tp::plan
