#include "simulate/replay.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/ledger.h"
#include "core/reservation.h"
#include "plan/job_class.h"
#include "simulate/gate_clock.h"

namespace tp::simulate {
namespace {

// What waits for so long after the last event will not start: every window and every month has come by.
constexpr absl::Duration kPatience = absl::Hours(24 * 366);

// At the same instant: what frees cards, then what takes some.
enum class EventKind : uint8_t { kEnd, kWindow, kSubmit };

struct Event {
  absl::Time at;
  EventKind kind = EventKind::kSubmit;
  size_t job = 0;
  bool operator<(const Event& other) const {
    return std::tie(at, kind, job) < std::tie(other.at, other.kind, other.job);
  }
};

// Cards, on a cpu series nodes.
int64_t UnitsOf(const PoolPlacement& pool) {
  return pool.gpus_per_node == 0 ? static_cast<int64_t>(pool.ranks.size()) : pool.cards();
}

std::string SizeOf(const core::ResolvedShape& shape) {
  std::string size;
  for (const core::PoolShape& pool : shape.pools) {
    const int64_t total = pool.gpus_per_node == 0 ? pool.nodes : pool.cards();
    size += fmt::format("{}{}:{}", size.empty() ? "" : "+", pool.series, total);
  }
  return size;
}

class Replayer {
 public:
  Replayer(const Workload& workload, const PolicyCase& rules, absl::Time begins, absl::TimeZone zone)
      : workload_(workload), rules_(rules), zone_(zone), planner_(rules.policy, zone, rules.registry) {
    outcome_.begins = outcome_.ends = begins;
    outcome_.jobs.resize(workload.jobs.size());
    for (const core::QuotaRule& rule : rules.user_quotas) planner_.PutRule(rule);
    planner_.SetStorage(core::kEverybody, {.bytes = 0, .scanned_at = begins});
    for (size_t i = 0; i < workload.jobs.size(); ++i) {
      events_.insert({begins + workload.jobs[i].at, EventKind::kSubmit, i});
    }
  }

  Outcome Run() {
    absl::Time last_event = outcome_.begins;
    while (const auto at = NextMoment(last_event)) {
      now_ = *at;
      while (!events_.empty() && events_.begin()->at <= now_) {
        last_event = now_;
        Take(events_.extract(events_.begin()).value());
      }
      Turn();
    }
    for (const auto& [n, job] : live_) AddWait(n, job.run.steps[0].ref, last_event);
    outcome_.planner = planner_.counters();
    return std::move(outcome_);
  }

 private:
  struct Job {
    core::RunWithSteps run;
    std::shared_ptr<const plan::Shape> shape;
    absl::Duration left;  // of what it runs
    std::optional<absl::Time> ends;
    std::optional<absl::Time> looks;  // at its window

    core::Step& step() { return run.steps[0]; }
  };

  std::optional<absl::Time> NextMoment(absl::Time last_event) const {
    std::optional<absl::Time> next;
    if (!live_.empty()) next = planner_.NextWake();
    if (next && *next > last_event + kPatience) next.reset();
    if (!events_.empty() && (!next || events_.begin()->at < *next)) next = events_.begin()->at;
    return next;
  }

  void Take(const Event& event) {
    ++outcome_.events;
    switch (event.kind) {
      case EventKind::kEnd:
        return End(event.job);
      case EventKind::kWindow:
        live_.at(event.job).looks.reset();
        return LookAtWindow(event.job);
      case EventKind::kSubmit:
        return Submit(event.job);
    }
  }

  void Turn() {
    planner_.BeginTurn(now_);
    while (auto start = planner_.Next()) Begin(*std::move(start));
    gates_.Look(planner_, now_);
    for (const core::StepRef ref : std::exchange(queued_now_, {})) {
      if (const auto job_class = planner_.ClassOf(ref)) gates_.Enter(*job_class, ref, now_);
    }
  }

  // --- A job's way --------------------------------------------------------------------------------

  std::shared_ptr<const plan::Shape> ShapeOf(const std::string& flag) {
    std::shared_ptr<const plan::Shape>& shape = shapes_[flag];
    if (!shape) shape = plan::MakeShape(*rules_.registry, {flag});
    return shape;
  }

  static std::string WhyRefused(const plan::Shape& shape, const core::Capacity& capacity) {
    if (!shape.resolved) return shape.why_not;
    if (capacity.CouldEverFit(*shape.resolved)) return "";
    return fmt::format("{} is more than the nodes of its series can hold", SizeOf(*shape.resolved));
  }

  void Submit(size_t index) {
    const Submission& submission = workload_.jobs[index];
    JobOutcome& outcome = outcome_.jobs[index];
    const std::shared_ptr<const plan::Shape> shape = ShapeOf(submission.profile);
    outcome.size = shape->resolved ? SizeOf(*shape->resolved) : submission.profile;
    outcome.refused = submission.refused.empty() ? WhyRefused(*shape, planner_.capacity()) : submission.refused;
    if (!outcome.refused.empty()) return;
    Job& job = live_[index];
    job.shape = shape;
    job.left = submission.runs;
    job.run.run.n = static_cast<int64_t>(index) + 1;
    job.run.run.owner = submission.user;
    job.run.run.priority = submission.priority;
    job.run.run.created_at = now_;
    core::Step& step = job.run.steps.emplace_back();
    step.ref = {job.run.run.n, 0};
    step.spec.profiles = {submission.profile};
    step.spec.time_limit = submission.time_limit;
    Queue(job);
  }

  void Queue(Job& job) {
    job.step().state = core::JobState::kQueued;
    job.step().entered_at = now_;
    planner_.Follow(job.run, job.step(), now_);
    queued_now_.push_back(job.step().ref);
  }

  void Begin(plan::Start start) {
    const size_t index = static_cast<size_t>(start.step.run) - 1;
    Job& job = live_.at(index);
    core::Step& step = job.step();
    AddWait(index, step.ref, now_);
    if (!outcome_.jobs[index].started) outcome_.jobs[index].started = now_;
    step.state = core::JobState::kRunning;
    step.entered_at = now_;
    core::Attempt& attempt = step.attempt.emplace();
    attempt.number = ++step.attempts;
    attempt.placement = std::move(start.placement);
    core::Meter& meter = attempt.meter.emplace();
    meter.opened.unix_us = absl::ToUnixMicros(now_);
    meter.seen_at = now_;
    planner_.Follow(job.run, step, now_);
    const absl::Duration runs = std::min(job.left, core::RemainingOwnLimit(step).value_or(absl::InfiniteDuration()));
    job.ends = now_ + runs;
    events_.insert({*job.ends, EventKind::kEnd, index});
    WatchWindow(index, job);
  }

  // It holds no cards any more.
  void Release(size_t index, Job& job) {
    core::Step& step = job.step();
    const absl::Duration ran = now_ - step.entered_at;
    step.ran += ran;
    job.left -= ran;
    Bill(index, job);
    step.attempt.reset();
    job.ends.reset();
    outcome_.ends = std::max(outcome_.ends, now_);
  }

  void Bill(size_t index, Job& job) {
    core::Attempt& attempt = *job.step().attempt;
    attempt.meter->closed_unix_us = absl::ToUnixMicros(now_);
    const core::LedgerOwner owner{
        .step = job.step().ref, .attempt = attempt.number, .owner = job.run.run.owner, .project = ""};
    for (const core::LedgerRow& row : core::LedgerRows(owner, *attempt.meter, attempt.placement, zone_)) {
      planner_.AddSettled(row.month, row.owner, row.gpu_ms);
      planner_.AddUse(row.owner, row.end_unix_ms, row.gpu_ms);
      outcome_.jobs[index].gpu_ms += row.gpu_ms;
    }
    for (const PoolPlacement& pool : attempt.placement) {
      outcome_.busy_ms[pool.series] += core::MeteredMs(*attempt.meter) * UnitsOf(pool);
    }
  }

  void End(size_t index) {
    Job& job = live_.at(index);
    Release(index, job);
    outcome_.jobs[index].ended = now_;
    outcome_.jobs[index].over_limit = job.left > absl::ZeroDuration();
    job.step().state = job.left > absl::ZeroDuration() ? core::JobState::kFailed : core::JobState::kSucceeded;
    planner_.Follow(job.run, job.step(), now_);
    if (job.looks) events_.erase({*job.looks, EventKind::kWindow, index});
    live_.erase(index);
  }

  // --- Windows ------------------------------------------------------------------------------------

  void LookAtWindow(size_t index) {
    Job& job = live_.at(index);
    const bool open = planner_.StandingOf(*job.shape->resolved, now_).open;
    const bool paused = job.step().state == core::JobState::kPaused;
    if (job.ends && !open) {
      Pause(index, job);
    } else if (paused && open && now_ >= job.step().entered_at + rules_.policy.min_flip) {
      job.step().pause.window = false;
      return Queue(job);
    }
    WatchWindow(index, job);
  }

  void Pause(size_t index, Job& job) {
    events_.erase({*job.ends, EventKind::kEnd, index});
    Release(index, job);
    ++outcome_.jobs[index].pauses;
    job.step().state = core::JobState::kPaused;
    job.step().entered_at = now_;
    job.step().pause.window = true;
    planner_.Follow(job.run, job.step(), now_);
  }

  // Looks again when what holds for a job that runs or is paused may change.
  void WatchWindow(size_t index, Job& job) {
    const core::WindowStanding standing = planner_.StandingOf(*job.shape->resolved, now_);
    const bool paused = job.step().state == core::JobState::kPaused;
    std::optional<absl::Time> next = standing.edge;
    if (paused && standing.open) next = job.step().entered_at + rules_.policy.min_flip;
    if (job.looks) events_.erase({*job.looks, EventKind::kWindow, index});
    job.looks = next;
    if (next) events_.insert({*next, EventKind::kWindow, index});
  }

  void AddWait(size_t index, core::StepRef ref, absl::Time until) {
    const GateTimes waited = gates_.Leave(ref, until);
    for (size_t gate = 0; gate < waited.size(); ++gate) outcome_.jobs[index].waited[gate] += waited[gate];
  }

  const Workload& workload_;
  const PolicyCase& rules_;
  const absl::TimeZone zone_;
  plan::Planner planner_;
  GateClock gates_;
  absl::Time now_;
  std::set<Event> events_;
  std::map<size_t, Job> live_;  // queued, running or paused
  std::map<std::string, std::shared_ptr<const plan::Shape>> shapes_;
  std::vector<core::StepRef> queued_now_;  // in this turn
  Outcome outcome_;
};

}  // namespace

Outcome Replay(const Workload& workload, const PolicyCase& rules, absl::Time begins, absl::TimeZone accounting_zone) {
  return Replayer(workload, rules, begins, accounting_zone).Run();
}

}  // namespace tp::simulate
