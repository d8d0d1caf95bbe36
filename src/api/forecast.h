// When waiting steps are estimated to start, and how far such estimates were off. Made off the loop, of a
// copy of its values (plan/estimate.h), at most once for all that ask at the same time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "api/queue.h"
#include "loop/commands.h"
#include "plan/estimate.h"
#include "plan/estimate_record.h"

namespace tp::api {

struct Context;

struct Forecast {
  absl::Time at;          // of the values it is made of
  int64_t revision = 0;   // of the queue likewise
  bool left_out = false;  // some that wait are so far behind that nobody looked
  std::map<core::StepRef, plan::StartEstimate> estimates;
};

// Of each series the first so many in order; what is held is no part of it.
inline constexpr int kEstimatedOfSeries = 100;
inline constexpr size_t kMostEstimated = 500;
struct StepsToEstimate {
  std::vector<core::StepRef> steps;
  bool left_out = false;  // there are more
};
StepsToEstimate ChooseSteps(const std::vector<WaitingStep>& queue);

// Thread-safe.
class Forecasts {
 public:
  // `then` gets a forecast that knows all that was queued up to `queued_by`, or null where none can be made
  // now. Called at once or on a thread of context.calls, where this is to be called, too.
  using Then = std::function<void(std::shared_ptr<const Forecast>)>;
  void Get(Context& context, absl::Time queued_by, Then then);

  // A loop::CommitListener: compares starts with what was estimated when the step was queued, and sees to it
  // that what is queued gets an estimate although nobody asks.
  void OnCommit(Context& context, const loop::CommitNotice& notice);

  // Of this process so far.
  std::optional<plan::EstimateErrors> errors() const;

  // Waits for the one that is being made. None is begun any more.
  void Stop();

 private:
  struct Waiter {
    absl::Time queued_by;
    Then then;
    bool waited_before = false;
  };

  bool Serves(Context& context, absl::Time queued_by, int64_t revision) const;  // mutex_ held
  void Make(Context& context);
  void Ask(Context& context, const core::Shares& shares);
  void OrNothing(Context& context, const std::function<void()>& work);
  void Finish(Context& context, std::shared_ptr<const Forecast> forecast);
  void TakeEvent(const store::EventRow& event);  // mutex_ held

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::shared_ptr<const Forecast> latest_;   // guarded by mutex_
  std::vector<Waiter> waiters_;              // guarded by mutex_: for the next one
  bool making_ = false;                      // guarded by mutex_
  bool stopped_ = false;                     // guarded by mutex_
  absl::Time begun_ = absl::InfinitePast();  // guarded by mutex_: the last one that nobody asked for
  // The estimate that each waiting step got first since it was queued or changed. Guarded by mutex_.
  std::map<core::StepRef, absl::Time> first_;
  std::set<core::StepRef> changed_;  // guarded by mutex_: since the making began
  plan::EstimateRecord record_;      // guarded by mutex_
};

}  // namespace tp::api
