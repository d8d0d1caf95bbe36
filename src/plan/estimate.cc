#include "plan/estimate.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/gates.h"
#include "core/ledger.h"
#include "core/resource.h"

namespace tp::plan {
namespace {

// The order of owners is looked at so often; tpd does every minute.
constexpr absl::Duration kSharesEvery = absl::Hours(1);

// At the same moment: what frees cards, then what takes some.
enum class EventKind : uint8_t { kEnd, kWindow, kShares };

struct Event {
  absl::Time at;
  EventKind kind = EventKind::kEnd;
  core::StepRef step;
  bool operator<(const Event& other) const {
    return std::tie(at, kind, step) < std::tie(other.at, other.kind, other.step);
  }
};

// The series and profiles that its hours are those of.
core::ResolvedShape ShapeOf(const std::vector<PoolPlacement>& placement) {
  core::ResolvedShape shape;
  for (const PoolPlacement& pool : placement) {
    core::PoolShape& to = shape.pools.emplace_back();
    to.series = pool.series;
    to.profile = pool.profile;
    to.nodes = static_cast<int64_t>(pool.ranks.size());
    to.gpus_per_node = pool.gpus_per_node;
  }
  return shape;
}

class Forecaster {
 public:
  explicit Forecaster(const ForecastInput& input)
      : input_(input), now_(input.now), planner_(input_.policy, input.accounting_zone, input.registry) {
    AddRules();
    for (const ForecastStep& step : input.holding) Hold(step);
    for (const ForecastStep& step : input.paused) Pause(AddJob(step), step.opens_at.value_or(now_) - MinFlip());
    for (const ForecastStep& step : input.waiting) Wait(step);
    if (input.policy.fair_share) events_.insert({now_ + kSharesEvery, EventKind::kShares, {}});
  }

  std::map<core::StepRef, StartEstimate> Run() {
    Turn();
    while (to_start_ > 0) {
      const auto next = NextMoment();
      if (!next || *next > input_.now + kEstimateHorizon) break;
      if (++turns_ > kMostEstimateTurns) break;
      now_ = std::max(now_, *next);
      while (!events_.empty() && events_.begin()->at <= now_) Take(events_.extract(events_.begin()).value());
      Turn();
    }
    for (const ForecastStep& step : input_.waiting) {
      const auto [found, added] = estimates_.try_emplace(step.ref);
      if (added) Explain(jobs_.at(step.ref), step, found->second);
    }
    return std::move(estimates_);
  }

 private:
  struct Job {
    core::RunWithSteps run;  // of this step only
    std::string run_id;
    core::ResolvedShape shape;  // whose hours count; empty: it does not resolve
    std::optional<absl::Duration> limit;
    std::optional<absl::Time> ends;
    std::optional<absl::Time> looks;  // at its window
    bool asked = false;               // an estimate is wanted

    core::Step& step() { return run.steps.front(); }
    const core::Step& step() const { return run.steps.front(); }
  };

  absl::Duration MinFlip() const { return input_.policy.min_flip; }

  void AddRules() {
    const std::string month = core::MonthOf(now_, input_.accounting_zone).name;
    for (const core::QuotaRule& rule : input_.quota_rules) planner_.PutRule(rule);
    for (const auto& [owner, use] : input_.use) {
      planner_.AddSettled(month, owner, use.month_gpu_ms);
      if (use.storage) planner_.SetStorage(owner, *use.storage);
    }
    for (const auto& [series, until] : input_.held_open) planner_.HoldOpen(series, until);
    for (const auto& [owner, share] : input_.shares) {
      planner_.AddUse(owner, absl::ToUnixMillis(now_), static_cast<int64_t>(share * 1000));
    }
  }

  // --- What there is ------------------------------------------------------------------------------

  Job& AddJob(const ForecastStep& from) {
    Job& job = jobs_[from.ref];
    job.run_id = from.run_id;
    job.limit = from.limit;
    job.run.run.n = from.ref.run;
    job.run.run.owner = from.owner;
    job.run.run.priority = from.priority;
    job.run.run.created_at = from.submitted;
    core::Step& step = job.run.steps.emplace_back();
    step.ref = from.ref;
    step.spec.profiles = from.profiles;
    step.spec.time_limit = from.limit;
    step.avoid_node = from.avoid_node;
    if (from.placement.empty()) {
      const auto shape = core::ResolveShape(*input_.registry, from.profiles);
      if (shape.ok()) job.shape = *shape;
    } else {
      job.shape = ShapeOf(from.placement);
    }
    return job;
  }

  void Hold(const ForecastStep& from) {
    Job& job = AddJob(from);
    job.step().spec.time_limit = std::max(absl::ZeroDuration(), from.counted_end - now_);
    Occupy(job, from.placement);
    if (from.frees_at) EndAt(job, std::max(now_, *from.frees_at));
    WatchWindow(job);
  }

  void Wait(const ForecastStep& from) {
    Job& job = AddJob(from);
    job.asked = true;
    if (from.opens_at == absl::InfiniteFuture()) return;  // somebody has to open it
    ++to_start_;
    job.step().backoff_until = from.opens_at;
    Queue(job);
  }

  // --- A job's way --------------------------------------------------------------------------------

  void Queue(Job& job) {
    job.step().state = core::JobState::kQueued;
    job.step().entered_at = now_;
    if (job.shape.pools.empty()) return;
    planner_.Follow(job.run, job.step(), now_);
  }

  void Occupy(Job& job, std::vector<PoolPlacement> placement) {
    core::Step& step = job.step();
    step.state = core::JobState::kRunning;
    step.entered_at = now_;
    core::Attempt& attempt = step.attempt.emplace();
    attempt.placement = std::move(placement);
    core::Meter& meter = attempt.meter.emplace();
    meter.opened.unix_us = absl::ToUnixMicros(now_);
    meter.seen_at = now_;
    planner_.Follow(job.run, step, now_);
  }

  void EndAt(Job& job, absl::Time at) {
    job.ends = at;
    events_.insert({at, EventKind::kEnd, job.step().ref});
  }

  void Begin(plan::Start start) {
    Job& job = jobs_.at(start.step);
    if (job.asked) {
      estimates_[start.step].starts_at = now_;
      job.asked = false;
      --to_start_;
    }
    Occupy(job, std::move(start.placement));
    if (job.limit) EndAt(job, now_ + *job.limit);
    WatchWindow(job);
  }

  // It holds no cards any more.
  void Release(Job& job, core::JobState state) {
    core::Step& step = job.step();
    if (job.limit) job.limit = std::max(absl::ZeroDuration(), *job.limit - (now_ - step.entered_at));
    Bill(job);
    step.attempt.reset();
    step.spec.time_limit = job.limit;
    step.state = state;
    step.entered_at = now_;
    job.ends.reset();
    planner_.Follow(job.run, step, now_);
  }

  void Bill(Job& job) {
    core::Meter& meter = *job.step().attempt->meter;
    meter.closed_unix_us = absl::ToUnixMicros(now_);
    const core::LedgerOwner owner{.step = job.step().ref, .attempt = 1, .owner = job.run.run.owner, .project = ""};
    for (const core::LedgerRow& row :
         core::LedgerRows(owner, meter, job.step().attempt->placement, input_.accounting_zone)) {
      planner_.AddSettled(row.month, row.owner, row.gpu_ms);
      planner_.AddUse(row.owner, row.end_unix_ms, row.gpu_ms);
    }
  }

  void Take(const Event& event) {
    if (event.kind == EventKind::kShares) {
      events_.insert({now_ + kSharesEvery, EventKind::kShares, {}});
      return;  // the turn looks at them
    }
    Job& job = jobs_.at(event.step);
    if (event.kind == EventKind::kEnd) {
      Release(job, core::JobState::kSucceeded);
      if (job.looks) events_.erase({*job.looks, EventKind::kWindow, event.step});
      job.looks.reset();
      return;
    }
    job.looks.reset();
    LookAtWindow(job);
  }

  // --- Windows ------------------------------------------------------------------------------------

  void LookAtWindow(Job& job) {
    core::Step& step = job.step();
    const bool open = planner_.StandingOf(job.shape, now_).open;
    if (step.attempt && !open) {
      if (job.ends) events_.erase({*job.ends, EventKind::kEnd, step.ref});
      Release(job, core::JobState::kPaused);
      step.pause.window = true;
    } else if (step.state == core::JobState::kPaused && open && now_ >= step.entered_at + MinFlip()) {
      step.pause.window = false;
      return Queue(job);
    }
    WatchWindow(job);
  }

  void Pause(Job& job, absl::Time since) {
    if (job.shape.pools.empty()) return;
    job.step().state = core::JobState::kPaused;
    job.step().entered_at = since;
    job.step().pause.window = true;
    WatchWindow(job);
  }

  void WatchWindow(Job& job) {
    const core::WindowStanding standing = planner_.StandingOf(job.shape, now_);
    const bool paused = job.step().state == core::JobState::kPaused;
    job.looks = standing.edge;
    if (paused && standing.open) job.looks = std::max(now_, job.step().entered_at + MinFlip());
    if (job.looks) events_.insert({*job.looks, EventKind::kWindow, job.step().ref});
  }

  // --- Time ---------------------------------------------------------------------------------------

  std::optional<absl::Time> NextMoment() const {
    std::optional<absl::Time> next = planner_.NextOpening();
    if (!events_.empty() && (!next || events_.begin()->at < *next)) next = events_.begin()->at;
    return next;
  }

  void Turn() {
    planner_.BeginTurn(now_);
    while (auto start = planner_.Next()) Begin(*std::move(start));
  }

  // --- Why there is none --------------------------------------------------------------------------

  void Explain(const Job& job, const ForecastStep& from, StartEstimate& to) const {
    to.why_none = WhyNone(job, from);
    if (to.why_none != NoEstimate::kFar && to.why_none != NoEstimate::kWork) return;
    const Job* endless = job.shape.pools.empty() ? nullptr : EndlessBefore(job);
    if (endless == nullptr) return;
    to.why_none = NoEstimate::kNoLimit;
    to.behind_run = endless->run_id;
    to.behind_owner = endless->run.run.owner;
  }

  NoEstimate WhyNone(const Job& job, const ForecastStep& from) const {
    if (from.held) return NoEstimate::kHeld;
    if (from.opens_at == absl::InfiniteFuture()) return NoEstimate::kDependency;
    if (job.shape.pools.empty()) return NoEstimate::kShape;
    if (!planner_.capacity().CouldEverFit(job.shape)) return NoEstimate::kRoom;
    if (const auto quota = ClosedForGood(job)) return *quota;
    const core::WindowStanding window = planner_.StandingOf(job.shape, now_);
    if (!window.open && !window.edge) return NoEstimate::kWindow;
    return turns_ > kMostEstimateTurns ? NoEstimate::kWork : NoEstimate::kFar;
  }

  // A quota that stays closed although its owner holds nothing.
  std::optional<NoEstimate> ClosedForGood(const Job& job) const {
    const std::string& owner = job.run.run.owner;
    core::QuotaUse nothing;
    nothing.storage = planner_.usage().UseOf(owner, now_).storage;
    const auto gate = core::ClosedQuota(job.shape, planner_.quotas().LimitsOf(owner, now_), nothing);
    if (!gate) return std::nullopt;
    return *gate == core::GateKind::kQuotaStorage ? NoEstimate::kStorage : NoEstimate::kQuota;
  }

  // The first by its number that keeps what the job waits for, and of which nobody knows when it ends.
  const Job* EndlessBefore(const Job& job) const {
    const core::Step& step = job.step();
    const std::string& owner = job.run.run.owner;
    const auto quota =
        core::ClosedQuota(job.shape, planner_.quotas().LimitsOf(owner, now_), planner_.usage().UseOf(owner, now_));
    if (quota == core::GateKind::kQuotaGpuHours) return nullptr;  // what runs does not give them back
    std::set<std::string> series;
    for (const core::PoolShape& pool : job.shape.pools) series.insert(pool.series);
    for (const auto& [ref, occupant] : planner_.occupants().all()) {
      const Job& other = jobs_.at(ref);
      if (other.ends || ref == step.ref) continue;
      const bool same_owner = other.run.run.owner == owner;
      const bool same_cards = std::any_of(series.begin(), series.end(),
                                          [&](const std::string& one) { return occupant.series.contains(one); });
      if (quota ? same_owner : same_cards) return &other;
    }
    return nullptr;
  }

  const ForecastInput& input_;
  absl::Time now_;
  Planner planner_;
  std::map<core::StepRef, Job> jobs_;
  std::set<Event> events_;
  std::map<core::StepRef, StartEstimate> estimates_;
  int to_start_ = 0;
  int turns_ = 0;
};

}  // namespace

std::map<core::StepRef, StartEstimate> EstimateStarts(const ForecastInput& input) { return Forecaster(input).Run(); }

std::string WhyNoEstimate(const StartEstimate& estimate, bool named) {
  switch (estimate.why_none) {
    case NoEstimate::kHeld:
      return "it is held";
    case NoEstimate::kDependency:
      return "it waits for another step or run";
    case NoEstimate::kShape:
      return "its shape is not valid";
    case NoEstimate::kRoom:
      return "it needs more than its series has";
    case NoEstimate::kQuota:
      return "the quota is too small for it";
    case NoEstimate::kStorage:
      return "storage is over quota or not measured yet";
    case NoEstimate::kWindow:
      return "its window never opens";
    case NoEstimate::kNoLimit:
      return fmt::format("{} ahead has no time limit", named ? estimate.behind_run : "a job");
    case NoEstimate::kFar:
      return fmt::format("not within {} days", kEstimateHorizon / absl::Hours(24));
    case NoEstimate::kWork:
      return "too much ends and starts before it";
    case NoEstimate::kBehind:
      return "too many are ahead of it";
    case NoEstimate::kUnknown:
      return "it is not worked out yet";
  }
  return "";
}

}  // namespace tp::plan
