#include "sim/monitor.h"

#include <algorithm>

#include "core/gates.h"
#include "core/resource.h"
#include "core/windows.h"
#include "sim/bills.h"

namespace tp::sim {
namespace {

using core::JobState;

// How often the completeness of the blocked index is proven by brute force.
constexpr int64_t kOverlookedEveryTurns = 16;

// The series that an admin limits.
constexpr std::string_view kLimitedSeries = "gpu";

int64_t CardsOf(const core::Attempt& attempt, std::string_view series) {
  int64_t cards = 0;
  for (const PoolPlacement& pool : attempt.placement) cards += pool.series == series ? pool.cards() : 0;
  return cards;
}

// Whether what the step waits for ended as it must.
bool ItsTurn(const core::RunWithSteps& run, const core::Step& step) {
  if (!step.spec.after) return true;
  const JobState other = run.steps[static_cast<size_t>(step.spec.after->step)].state;
  switch (step.spec.after->when) {
    case core::AfterWhen::kSuccess:
      return other == JobState::kSucceeded;
    case core::AfterWhen::kFailure:
      return other == JobState::kFailed;
    case core::AfterWhen::kAlways:
      return core::IsTerminal(other);
  }
  return false;
}

// The same of the other runs that it comes after; what has started once does not wait again.
bool OthersEnded(store::MemoryStore& store, const core::Run& run) {
  return std::all_of(run.after.begin(), run.after.end(), [&store](const core::RunDependency& other) {
    const auto stored = store.GetRun(other.run);
    if (!stored.ok()) return false;
    const core::RunWord word = core::RollUp(stored->steps);
    switch (other.when) {
      case core::AfterWhen::kSuccess:
        return word == core::RunWord::kSucceeded;
      case core::AfterWhen::kFailure:
        return word == core::RunWord::kFailed || word == core::RunWord::kPartial;
      case core::AfterWhen::kAlways:
        return core::IsTerminal(word);
    }
    return false;
  });
}

}  // namespace

Monitor::Monitor(const core::Table& table, const core::Policy& policy, const Timeline& timeline, Journal& journal,
                 const World& world, const Promises& promises)
    : RowRules(table, policy, timeline, journal, world),
      timeline_(timeline),
      journal_(journal),
      world_(world),
      promises_(promises) {}

void Monitor::Took(const TakenRow& row) {
  RowRules::Took(row);
  if (row.rule.then_what == core::Then::kRefuse) return;
  paths_[row.before.ref].emplace_back(row.from, row.to);
}

void Monitor::Committed(const store::Txn& txn) {
  CheckQuotas(txn);
  CheckLedger(txn);
}

void Monitor::CheckLedger(const store::Txn& txn) {
  std::map<core::AttemptRef, std::vector<core::LedgerRow>> bills;
  std::map<core::AttemptRef, std::vector<core::LedgerRow>> corrections;
  for (const core::LedgerRow& row : txn.ledger) {
    (row.delta ? corrections : bills)[{{row.run, row.step}, row.attempt}].push_back(row);
  }
  for (auto& [ref, rows] : bills) {
    if (!billed_.insert(ref).second) journal_.Break("run {} attempt {} is billed twice", ref.step.run, ref.attempt);
    CheckBill(core::AttemptKey(kDeployment, ref), rows, world_, journal_);
    if (rows.front().flagged) flagged_[ref] = std::move(rows);
  }
  for (auto& [ref, rows] : corrections) CheckCorrection(ref, std::move(rows));
}

void Monitor::CheckCorrection(const core::AttemptRef& ref, std::vector<core::LedgerRow> rows) {
  const std::string key = core::AttemptKey(kDeployment, ref);
  if (!corrected_.insert(ref).second) journal_.Break("{} is corrected twice", key);
  const auto flagged = flagged_.find(ref);
  if (flagged == flagged_.end()) {
    journal_.Break("{} is corrected and was not flagged", key);
    return;
  }
  rows.insert(rows.end(), flagged->second.begin(), flagged->second.end());
  CheckCorrected(key, rows, world_, journal_);
}

std::vector<core::AttemptRef> Monitor::Uncorrected() const {
  std::vector<core::AttemptRef> uncorrected;
  for (const auto& [ref, rows] : flagged_) {
    if (!corrected_.contains(ref)) uncorrected.push_back(ref);
  }
  return uncorrected;
}

void Monitor::Launching(store::MemoryStore& store, const AttemptTarget& target, const LaunchSpec& spec) {
  if (spec.key != target.key || spec.nonce != target.nonce)
    journal_.Break("{} is launched as {}", target.key, spec.key);
  if (!launched_.insert(target.key).second) journal_.Break("{} is launched twice", target.key);
  const auto parsed = core::ParseAttemptKey(target.key);
  if (!parsed) return;
  const core::AttemptRef& ref = parsed->attempt;
  int32_t& last = last_launched_[ref.step];
  if (ref.attempt <= last) journal_.Break("{} is launched after attempt {}", target.key, last);
  last = std::max(last, ref.attempt);
  if (promises_.Stopped(ref.step.run)) journal_.Break("{} is launched although its stop was acknowledged", target.key);
  const auto stored = store.GetRun(ref.step.run);
  const bool durable = stored.ok() && static_cast<size_t>(ref.step.step) < stored->steps.size() &&
                       stored->steps[static_cast<size_t>(ref.step.step)].attempt &&
                       stored->steps[static_cast<size_t>(ref.step.step)].attempt->nonce == target.nonce;
  if (!durable) journal_.Break("{} is launched before it is durable", target.key);
  if (durable && !ItsTurn(*stored, stored->steps[static_cast<size_t>(ref.step.step)])) {
    journal_.Break("{} is launched although it is not its turn", target.key);
  }
  const bool first = durable && ref.attempt == 1 && !stored->steps[static_cast<size_t>(ref.step.step)].spec.after;
  if (first && stored->steps.size() == 1 && !OthersEnded(store, stored->run)) {
    journal_.Break("{} is launched although what it comes after is not over", target.key);
  }
}

void Monitor::Restarted(const loop::Loop& loop) {
  states_.clear();
  paths_.clear();
  against_window_.clear();
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) admitted_[step.ref] = step.attempt ? step.attempt->number : 0;
  }
  std::map<std::string, const core::Step*> live;
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) {
      states_[step.ref] = step.state;
      if (step.attempt) live[step.attempt->key] = &step;
    }
  }
  ForgetReadings(live);
}

void Monitor::Turned(const loop::Loop& loop, bool quiet) {
  ++turns_;
  if (loop.counters().quarantined > 0) journal_.Break("an event could not be applied and holds its job");
  CheckPaths(loop);
  for (const auto& [n, run] : loop.runs()) promises_.Check(run);
  CheckCards(loop);
  CheckArrays(loop);
  CheckAdmissions(loop);
  if (quiet) CheckWindows(loop);
  if (!quiet || turns_ % kOverlookedEveryTurns != 0) return;
  for (const core::StepRef& ref : Overlooked(loop, timeline_.wall())) {
    journal_.Break("run {} step {} could start and nobody looks at it", ref.run, ref.step);
  }
}

// A step stands where the rows took it, and nowhere else.
void Monitor::CheckPaths(const loop::Loop& loop) {
  for (const auto& [ref, path] : paths_) {
    const auto known = states_.find(ref);
    JobState at = known != states_.end() ? known->second : path.front().first;
    for (const auto& [from, to] : path) {
      if (at != from)
        journal_.Break("run {} step {} went from {} on, it was {}", ref.run, ref.step, core::Name(from),
                       core::Name(at));
      at = to;
    }
    states_[ref] = at;
    const auto run = loop.runs().find(ref.run);
    if (run == loop.runs().end()) {
      if (!core::IsTerminal(at)) journal_.Break("run {} left memory in {}", ref.run, core::Name(at));
      continue;
    }
    const core::Step& step = run->second.steps[static_cast<size_t>(ref.step)];
    if (step.state != at) {
      journal_.Break("run {} step {} is {}, its rows say {}", ref.run, ref.step, core::Name(step.state),
                     core::Name(at));
    }
  }
  paths_.clear();
}

void Monitor::CheckArrays(const loop::Loop& loop) {
  for (const auto& [n, run] : loop.runs()) {
    if (run.run.array_limit == 0) continue;
    int32_t live = 0;
    for (const core::Step& step : run.steps) live += step.attempt ? 1 : 0;
    if (live > run.run.array_limit) {
      journal_.Break("run {} has {} live tasks, and {} may be", n, live, run.run.array_limit);
    }
  }
}

void Monitor::CheckCards(const loop::Loop& loop) {
  std::vector<const std::vector<PoolPlacement>*> live;
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) {
      if (step.attempt) live.push_back(&step.attempt->placement);
    }
  }
  if (core::Capacity::Oversubscribed(live)) journal_.Break("two live attempts hold the same card");
}

// What started in this turn, by what is in force in it.
void Monitor::CheckAdmissions(const loop::Loop& loop) {
  const plan::Planner& planner = loop.planner();
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) {
      int32_t& newest = admitted_[step.ref];
      if (!step.attempt || step.attempt->number == newest) continue;
      newest = step.attempt->number;
      const core::Schedule schedule = core::ScheduleOf(planner.registry(), step.attempt->shape, planner.held_open());
      if (!core::StandingAt(schedule, timeline_.wall()).open) {
        journal_.Break("run {} step {} starts although its window is closed", n, step.ref.step);
      }
    }
  }
}

// By what was committed alone: rules, owners and attempts, whatever the loop believes.
void Monitor::CheckQuotas(const store::Txn& txn) {
  for (const core::QuotaRule& rule : txn.quota_rules) rules_.Add(rule);
  for (const int64_t id : txn.quota_rules_removed) rules_.Remove(id);
  for (const core::Run& run : txn.runs) owners_[run.n] = run.owner;
  TakeMarks(txn);
  std::set<core::StepRef> started;
  for (const core::Step& step : txn.steps) {
    if (!step.attempt) {
      live_.erase(step.ref);
      continue;
    }
    Live& live = live_[step.ref];
    if (live.number != step.attempt->number) {
      started.insert(step.ref);
      CheckNodes(step);
    }
    live = {step.attempt->number, step.attempt->cards(), CardsOf(*step.attempt, kLimitedSeries)};
  }
  for (const core::StepRef& ref : started) CheckQuota(ref);
}

// Marks are made before anything of their turn starts.
void Monitor::TakeMarks(const store::Txn& txn) {
  for (const core::NodeMark& mark : txn.node_marks) nodes_.Put(mark);
  for (const core::NodePart& part : txn.node_marks_removed) nodes_.Drop(part);
}

void Monitor::CheckNodes(const core::Step& started) {
  for (const PoolPlacement& pool : started.attempt->placement) {
    for (const RankPlacement& rank : pool.ranks) {
      bool withheld = nodes_.Find({.node = rank.node}) != nullptr;
      for (const int card : rank.cards) withheld |= nodes_.Find({.node = rank.node, .card = card}) != nullptr;
      if (withheld) journal_.Break("run {} starts on {}, which is out of service", started.ref.run, rank.node);
    }
  }
}

void Monitor::CheckQuota(core::StepRef started) {
  const std::string& owner = owners_[started.run];
  Live sum;
  for (const auto& [ref, live] : live_) {
    if (owners_[ref.run] != owner) continue;
    sum.number += 1;
    sum.cards += live.cards;
    sum.of_series += live.of_series;
  }
  const core::QuotaLimits limits = rules_.LimitsOf(owner, timeline_.wall());
  const auto series = limits.series_gpus.find(std::string(kLimitedSeries));
  const Live& live = live_[started];
  const bool over = (limits.jobs && sum.number > *limits.jobs) ||
                    (limits.gpus && live.cards > 0 && sum.cards > *limits.gpus) ||
                    (live.of_series > 0 && series != limits.series_gpus.end() && sum.of_series > series->second);
  if (over) journal_.Break("run {} starts above the quota of {}", started.run, owner);
}

// What its window asks for and has not been done; empty: nothing.
std::string Monitor::AgainstWindow(const loop::Loop& loop, const core::RunWithSteps& run,
                                   const core::Step& step) const {
  const plan::Planner& planner = loop.planner();
  const bool live = step.attempt && !step.attempt->ending && !step.stop_requested && !step.pause.window;
  const bool paused = step.state == JobState::kPaused && step.pause.window && run.run.snapshot_available;
  if (!live && !paused) return "";
  const auto shape = core::ResolveShape(planner.registry(), step.spec.profiles);
  if (!step.attempt && !shape.ok()) return "";
  const core::Schedule schedule =
      core::ScheduleOf(planner.registry(), step.attempt ? step.attempt->shape : *shape, planner.held_open());
  const bool open = core::StandingAt(schedule, timeline_.wall()).open;
  if (live && !open) return "lives on although its window is closed";
  if (paused && open) return "stays paused although its window is open";
  return "";
}

void Monitor::CheckWindows(const loop::Loop& loop) {
  const absl::Duration patience = loop.settings().policy.min_flip + absl::Seconds(15);
  std::map<core::StepRef, int64_t> against;
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) {
      const std::string what = AgainstWindow(loop, run, step);
      if (what.empty()) continue;
      const auto known = against_window_.find(step.ref);
      const int64_t since = known == against_window_.end() ? timeline_.now_us() : known->second;
      against[step.ref] = since;
      if (absl::Microseconds(timeline_.now_us() - since) > patience) {
        journal_.Break("run {} step {} {}", n, step.ref.step, what);
      }
    }
  }
  against_window_ = std::move(against);
}

std::vector<core::StepRef> Monitor::Overlooked(const loop::Loop& loop, absl::Time now) {
  const plan::Planner& planner = loop.planner();
  std::vector<core::StepRef> overlooked;
  for (const auto& [n, run] : loop.runs()) {
    for (const core::Step& step : run.steps) {
      if (step.state != JobState::kQueued) continue;
      const auto shape = core::ResolveShape(planner.registry(), step.spec.profiles);
      if (shape.ok() && planner.Verdicts(run, step, &*shape, now).empty()) overlooked.push_back(step.ref);
    }
  }
  return overlooked;
}

}  // namespace tp::sim
