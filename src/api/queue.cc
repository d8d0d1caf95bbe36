#include "api/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/status.h"
#include "core/gates.h"
#include "core/order.h"
#include "core/resource.h"
#include "core/run.h"
#include "store/each_run.h"

namespace tp::api {
namespace {

// Shapes by their flags: a long queue asks for few different ones.
class WantedByFlags {
 public:
  explicit WantedByFlags(const core::Registry& registry) : registry_(registry) {}

  std::shared_ptr<const WantedCards> Of(const std::vector<std::string>& profiles) {
    std::shared_ptr<const WantedCards>& known = known_[profiles];
    if (!known) known = std::make_shared<const WantedCards>(Resolve(profiles));
    return known;
  }

 private:
  WantedCards Resolve(const std::vector<std::string>& profiles) const {
    const auto shape = core::ResolveShape(registry_, profiles);
    if (!shape.ok()) return {.shape = fmt::format("{}", fmt::join(profiles, "\n")), .cards = 0, .series = {}};
    WantedCards wanted{.shape = core::DescribeShape(*shape), .cards = shape->cards(), .series = {}};
    for (const core::PoolShape& pool : shape->pools) wanted.series.push_back(pool.series);
    std::sort(wanted.series.begin(), wanted.series.end());
    wanted.series.erase(std::unique(wanted.series.begin(), wanted.series.end()), wanted.series.end());
    return wanted;
  }

  const core::Registry& registry_;
  std::map<std::vector<std::string>, std::shared_ptr<const WantedCards>> known_;
};

bool IsDue(const core::RunWithSteps& run, const core::Step& step) {
  return step.state == core::JobState::kQueued && core::Dependency(run, step) == core::DependencyState::kMet;
}

core::QueueOrder OrderOf(const WaitingStep& step) {
  return {.effective_priority = step.effective_priority,
          .share = step.share,
          .submitted = step.submitted_at,
          .step = step.ref};
}

}  // namespace

bool Wants(const WaitingStep& step, const std::string& series) {
  return std::binary_search(step.wanted->series.begin(), step.wanted->series.end(), series);
}

bool Compete(const WaitingStep& a, const WaitingStep& b) {
  const auto& series = a.wanted->series;
  return std::any_of(series.begin(), series.end(), [&b](const std::string& name) { return Wants(b, name); });
}

absl::StatusOr<std::vector<WaitingStep>> ReadQueue(store::Reader& reader, const core::Registry& registry,
                                                   const core::Policy& policy, const core::Shares& shares,
                                                   absl::Time now) {
  WantedByFlags wanted(registry);
  std::vector<WaitingStep> queue;
  store::RunFilter unfinished;  // a step may wait while another of its run is live
  unfinished.words = {core::RunWord::kQueued, core::RunWord::kSubmitted, core::RunWord::kPending,
                      core::RunWord::kRunning};
  TP_RETURN_IF_ERROR(store::EachRun(reader, unfinished, [&](const core::RunWithSteps& run) {
    for (const core::Step& step : run.steps) {
      if (!IsDue(run, step)) continue;
      queue.push_back({.ref = step.ref,
                       .owner = run.run.owner,
                       .priority = run.run.priority,
                       .effective_priority = core::EffectivePriority(run.run.priority, run.run.created_at, now, policy),
                       .share = core::ShareOf(shares, run.run.owner),
                       .submitted_at = run.run.created_at,
                       .held = step.hold.any(),
                       .wanted = wanted.Of(step.spec.profiles)});
    }
    return absl::OkStatus();
  }));
  std::sort(queue.begin(), queue.end(),
            [](const WaitingStep& a, const WaitingStep& b) { return OrderOf(a) < OrderOf(b); });
  return queue;
}

}  // namespace tp::api
