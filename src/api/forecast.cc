#include "api/forecast.h"

#include <algorithm>
#include <utility>

#include "api/context.h"
#include "api/queue_cache.h"

namespace tp::api {
namespace {

// So long one serves although the queue has changed, and although only time has passed.
constexpr absl::Duration kServesAfterChanges = absl::Seconds(1);
constexpr absl::Duration kServes = absl::Seconds(30);
// No more often than this where nobody asks.
constexpr absl::Duration kUnaskedEvery = absl::Seconds(10);

bool StillWaits(const loop::CommitNotice& notice) {
  std::map<core::StepRef, core::JobState> last;
  for (const store::EventRow& event : notice.events) last[{event.run, event.step}] = event.to;
  return std::any_of(last.begin(), last.end(),
                     [](const auto& entry) { return entry.second == core::JobState::kQueued; });
}

}  // namespace

StepsToEstimate ChooseSteps(const std::vector<WaitingStep>& queue) {
  StepsToEstimate chosen;
  std::map<std::string, int> of_series;
  for (const WaitingStep& step : queue) {
    const auto& series = step.wanted->series;
    if (step.held || series.empty()) continue;
    const bool full = std::any_of(series.begin(), series.end(),
                                  [&](const std::string& name) { return of_series[name] >= kEstimatedOfSeries; });
    if (full || chosen.steps.size() == kMostEstimated) {
      chosen.left_out = true;
      continue;
    }
    for (const std::string& name : series) ++of_series[name];
    chosen.steps.push_back(step.ref);
  }
  return chosen;
}

bool Forecasts::Serves(Context& context, absl::Time queued_by, int64_t revision) const {
  if (!latest_ || latest_->at <= queued_by) return false;
  return context.now() - latest_->at < (latest_->revision == revision ? kServes : kServesAfterChanges);
}

void Forecasts::Get(Context& context, absl::Time queued_by, Then then) {
  const int64_t revision = context.hub.revision();
  std::unique_lock lock(mutex_);
  if (stopped_ || Serves(context, queued_by, revision)) {
    const std::shared_ptr<const Forecast> ready = latest_;
    lock.unlock();
    return then(ready);
  }
  waiters_.push_back({queued_by, std::move(then)});
  if (std::exchange(making_, true)) return;
  lock.unlock();
  Make(context);
}

void Forecasts::Make(Context& context) {
  const auto none = [this, &context](const absl::Status&) { Finish(context, nullptr); };
  WithShares(context, none,
             [this, &context](const core::Shares& shares) { OrNothing(context, [&] { Ask(context, shares); }); });
}

void Forecasts::Ask(Context& context, const core::Shares& shares) {
  const auto queue = context.queue.Read(context, shares);
  if (!queue.ok()) return Finish(context, nullptr);
  StepsToEstimate chosen = ChooseSteps((*queue)->steps);
  auto made = std::make_shared<Forecast>();
  made->revision = (*queue)->revision;
  made->left_out = chosen.left_out;
  context.loop.Post(loop::ForecastQuery{std::move(chosen.steps)}, [this, &context, made](auto input) {
    context.calls.Post([this, &context, made, input = std::move(input)] {
      if (!input.ok()) return Finish(context, nullptr);
      OrNothing(context, [&] {
        made->at = (*input)->now;
        made->estimates = plan::EstimateStarts(**input);
        Finish(context, made);
      });
    });
  });
}

// Whoever waits is told, and the next one can be made, also where the work ended in an exception.
void Forecasts::OrNothing(Context& context, const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    Finish(context, nullptr);
    throw;
  }
}

void Forecasts::Finish(Context& context, std::shared_ptr<const Forecast> forecast) {
  std::vector<Waiter> served;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    if (forecast) {
      for (const auto& [ref, estimate] : forecast->estimates) {
        if (estimate.starts_at && !changed_.contains(ref)) first_.try_emplace(ref, *estimate.starts_at);
      }
    }
    changed_.clear();
    latest_ = forecast;
    // Whose step was queued after the values were taken, or in the same turn, waits for the next one.
    const auto rest = std::partition(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
      return stopped_ || !forecast || waiter.waited_before || waiter.queued_by < forecast->at;
    });
    served.assign(std::make_move_iterator(waiters_.begin()), std::make_move_iterator(rest));
    waiters_.erase(waiters_.begin(), rest);
    for (Waiter& waiter : waiters_) waiter.waited_before = true;
    making_ = again = !waiters_.empty();
    if (!again) idle_.notify_all();
  }
  if (again) context.calls.Post([this, &context] { Make(context); });
  for (Waiter& waiter : served) {
    context.calls.Post([then = std::move(waiter.then), forecast] { then(forecast); });
  }
}

void Forecasts::TakeEvent(const store::EventRow& event) {
  const core::StepRef ref{event.run, event.step};
  if (making_) changed_.insert(ref);
  const auto first = first_.find(ref);
  if (first == first_.end()) return;
  if (event.from == core::JobState::kQueued && event.to == core::JobState::kSubmitted) {
    record_.Add(first->second, event.at);
  }
  first_.erase(first);
}

void Forecasts::OnCommit(Context& context, const loop::CommitNotice& notice) {
  const absl::Time now = context.now();
  {
    const std::lock_guard lock(mutex_);
    for (const store::EventRow& event : notice.events) TakeEvent(event);
    if (making_ || stopped_ || now < begun_ + kUnaskedEvery || !StillWaits(notice)) return;
    begun_ = now;
    making_ = true;
  }
  context.calls.Post([this, &context] { Make(context); });
}

std::optional<plan::EstimateErrors> Forecasts::errors() const {
  const std::lock_guard lock(mutex_);
  return record_.errors();
}

void Forecasts::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [this] { return !making_; });
}

}  // namespace tp::api
