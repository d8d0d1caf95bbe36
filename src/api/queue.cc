#include "api/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/status.h"
#include "core/order.h"
#include "core/resource.h"
#include "store/waiting.h"

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

core::QueueOrder OrderOf(const WaitingStep& step) {
  return {.effective_priority = step.effective_priority,
          .share = step.share,
          .submitted = step.submitted_at,
          .step = step.ref};
}

bool IsBefore(const WaitingStep& a, const WaitingStep& b) { return OrderOf(a) < OrderOf(b); }

WaitingStep WaitingOf(const store::QueuedStepRow& row, WantedByFlags& wanted) {
  WaitingStep step;
  step.ref = row.ref;
  step.owner = row.owner;
  step.priority = row.priority;
  step.submitted_at = row.submitted_at;
  step.held = row.held;
  step.wanted = wanted.Of(row.profiles);
  return step;
}

void SetOrder(WaitingStep& step, const core::Policy& policy, const core::Shares& shares, absl::Time now) {
  step.effective_priority = core::EffectivePriority(step.priority, step.submitted_at, now, policy);
  step.share = core::ShareOf(shares, step.owner);
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
  TP_ASSIGN_OR_RETURN(const std::vector<store::QueuedStepRow> rows, reader.QueuedSteps());
  WantedByFlags wanted(registry);
  std::vector<WaitingStep> queue;
  queue.reserve(rows.size());
  for (const store::QueuedStepRow& row : rows) {
    queue.push_back(WaitingOf(row, wanted));
    SetOrder(queue.back(), policy, shares, now);
  }
  std::sort(queue.begin(), queue.end(), IsBefore);
  return queue;
}

absl::StatusOr<std::vector<WaitingStep>> RenewQueue(const std::vector<WaitingStep>& before,
                                                    const std::set<int64_t>& changed, store::Reader& reader,
                                                    const core::Registry& registry, const core::Policy& policy,
                                                    const core::Shares& shares, absl::Time now) {
  std::vector<WaitingStep> queue;
  queue.reserve(before.size() + changed.size());
  for (const WaitingStep& step : before) {
    if (!changed.contains(step.ref.run)) queue.push_back(step);
  }
  const auto kept = static_cast<std::ptrdiff_t>(queue.size());
  WantedByFlags wanted(registry);
  for (const int64_t n : changed) {
    const auto run = reader.GetRun(n);
    if (absl::IsNotFound(run.status())) continue;
    if (!run.ok()) return run.status();
    for (const store::QueuedStepRow& row : store::WaitingStepsOf(*run)) queue.push_back(WaitingOf(row, wanted));
  }
  for (WaitingStep& step : queue) SetOrder(step, policy, shares, now);
  // Mostly in order still: what ages keeps its place among its like.
  const auto middle = queue.begin() + kept;
  if (!std::is_sorted(queue.begin(), middle, IsBefore)) std::sort(queue.begin(), middle, IsBefore);
  std::sort(middle, queue.end(), IsBefore);
  std::inplace_merge(queue.begin(), middle, queue.end(), IsBefore);
  return queue;
}

}  // namespace tp::api
