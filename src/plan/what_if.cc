#include "plan/what_if.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/gate_text.h"
#include "core/resource.h"
#include "plan/planner.h"

namespace tp::plan {
namespace {

using ShapePtr = std::shared_ptr<const Shape>;

// How a queued step stood.
struct Before {
  ShapePtr shape;
  std::optional<core::GateKind> held_by;
};

// A step of the class, as far as the planner looks at it.
core::RunWithSteps StandIn(const ClassKey& key, core::StepRef ref) {
  core::RunWithSteps run;
  run.run.n = ref.run;
  run.run.owner = key.owner;
  run.run.priority = key.priority;
  core::Step& step = run.steps.emplace_back();
  step.ref = ref;
  step.spec.profiles = key.profiles;
  step.spec.time_limit = key.limit;
  step.avoid_node = key.avoid_node;
  return run;
}

// Lets start what starts now.
std::map<core::StepRef, std::string> Play(Planner& planner, absl::Time now) {
  std::map<core::StepRef, std::string> started;
  planner.BeginTurn(now);
  while (auto start = planner.Next()) {
    started.emplace(start->step, core::DescribeShape(start->shape));
    core::RunWithSteps run = StandIn(*planner.FindKey(start->step), start->step);
    core::Step& step = run.steps.front();
    step.state = core::JobState::kSubmitted;
    step.attempt.emplace();
    step.attempt->shape = std::move(start->shape);
    step.attempt->placement = std::move(start->placement);
    planner.Follow(run, step, now);
  }
  return started;
}

void Make(const Change& change, Planner& planner, absl::Time now) {
  if (change.registry) planner.SetRegistry(change.registry, now);
  for (const int64_t id : change.dropped_rules) planner.DropRule(id);
  for (const core::QuotaRule& rule : change.put_rules) planner.PutRule(rule);
  for (const auto& [series, until] : change.held_open) planner.HoldOpen(series, until);
}

std::string Reshaping(const core::ResolvedShape& before, const core::ResolvedShape& after) {
  const std::string now = core::DescribeShape(before);
  const std::string then = core::DescribeShape(after);
  return now == then ? then + ", with other settings" : then + ", now " + now;
}

std::optional<int64_t> OverBy(const std::optional<int64_t>& limit, int64_t used) {
  if (!limit || *limit == core::kNoLimit || used <= *limit) return std::nullopt;
  return used - *limit;
}

// What each user holds above the limits, by user and what.
std::map<std::pair<std::string, std::string>, OverQuota> OverNow(const Planner& planner, absl::Time now) {
  std::map<std::pair<std::string, std::string>, OverQuota> over;
  const auto look = [&](const std::string& user, const std::string& what, const std::optional<int64_t>& limit,
                        int64_t used) {
    if (OverBy(limit, used)) over.emplace(std::pair(user, what), OverQuota{user, what, used, *limit});
  };
  for (const std::string& user : planner.usage().Owners()) {
    const core::QuotaLimits limits = planner.quotas().LimitsOf(user, now);
    const core::QuotaUse use = planner.usage().UseOf(user, now);
    look(user, "gpus", limits.gpus, use.gpus);
    for (const auto& [series, gpus] : use.series_gpus) {
      const auto limit = limits.series_gpus.find(series);
      if (limit != limits.series_gpus.end()) look(user, "gpus of " + series, limit->second, gpus);
    }
    look(user, "jobs", limits.jobs, use.jobs);
  }
  return over;
}

class Foretelling {
 public:
  Foretelling(Planner& planner, const std::vector<Beside>& beside, absl::Time now)
      : planner_(planner), beside_(beside), now_(now) {}

  void LookBefore() {
    Play(planner_, now_);  // what starts in any case
    planner_.EachClass([&](const JobClass& job_class, std::optional<core::GateKind> held_by) {
      for (const core::StepRef& ref : job_class.all) before_.emplace(ref, Before{job_class.shape, held_by});
    });
    for (const Beside& one : beside_) {
      open_before_.push_back(IsOpen(one));
      if (IsPaused(one)) ShapeIn(shapes_before_, one.profiles);
    }
    over_before_ = OverNow(planner_, now_);
  }

  Forecast LookAfter(const Change& change, size_t most_effects) {
    Make(change, planner_, now_);
    for (auto& [ref, shape] : Play(planner_, now_)) Add({EffectKind::kReleased, ref, std::nullopt, std::move(shape)});
    std::map<ClassId, core::GateKind> gates;
    for (const auto& [id, gate] : planner_.GatesOfClasses()) gates.emplace(id, gate);
    planner_.EachClass([&](const JobClass& job_class, std::optional<core::GateKind> held_by) {
      const auto gate = gates.find(job_class.id);
      LookAtClass(job_class, held_by, gate == gates.end() ? std::nullopt : std::optional(gate->second));
    });
    for (size_t i = 0; i < beside_.size(); ++i) LookBeside(beside_[i], open_before_[i]);
    return Take(most_effects);
  }

 private:
  void Add(Effect effect) { effects_.push_back(std::move(effect)); }

  // --- Queued

  void LookAtClass(const JobClass& job_class, std::optional<core::GateKind> held_by,
                   std::optional<core::GateKind> waits_at) {
    std::string why_held;
    for (const core::StepRef& ref : job_class.all) {
      const Before& before = before_.at(ref);
      const bool ready = planner_.OwnGatesOpen(ref);
      const bool held = held_by && (ready || *held_by == core::GateKind::kHeld);
      const bool was_held = before.held_by && (ready || *before.held_by == core::GateKind::kHeld);
      if (held && !was_held) {
        if (why_held.empty()) why_held = WhyHeld(job_class, ref, *held_by);
        Add({EffectKind::kHeld, ref, held_by, why_held});
      } else if (!held && was_held) {
        Add({EffectKind::kOpened, ref, ready ? waits_at : std::nullopt,
             core::DescribeShape(*job_class.shape->resolved)});
      } else if (before.shape->resolved && job_class.shape->resolved &&
                 *before.shape->resolved != *job_class.shape->resolved) {
        Add({EffectKind::kReshaped, ref, std::nullopt, Reshaping(*before.shape->resolved, *job_class.shape->resolved)});
      }
    }
  }

  std::string WhyHeld(const JobClass& job_class, core::StepRef ref, core::GateKind gate) const {
    if (!job_class.shape->resolved) return job_class.shape->why_not;
    const core::RunWithSteps run = StandIn(job_class.key, ref);
    for (core::GateVerdict& verdict : planner_.Verdicts(run, run.steps.front(), &*job_class.shape->resolved, now_)) {
      if (verdict.gate == gate) return std::move(verdict.sentence);
    }
    return "";
  }

  // --- Beside

  static bool IsPaused(const Beside& one) {
    return one.state == Beside::State::kPaused || one.state == Beside::State::kPausedByWindow;
  }

  bool IsOpen(const Beside& one) {
    switch (one.state) {
      case Beside::State::kRunning:
      case Beside::State::kPending:
        return planner_.StandingOf(one.hours, now_).open;
      case Beside::State::kPaused:
        return true;
      case Beside::State::kPausedByWindow: {
        const ShapePtr shape = MakeShape(planner_.registry(), one.profiles);
        return shape->resolved && planner_.StandingOf(*shape->resolved, now_).open;
      }
    }
    return true;
  }

  void LookBeside(const Beside& one, bool was_open) {
    switch (one.state) {
      case Beside::State::kRunning:
        if (was_open && !IsOpen(one)) Add({EffectKind::kPaused, one.step, core::GateKind::kWindow, WhyClosed(one)});
        return;
      case Beside::State::kPending:
        if (was_open && !IsOpen(one)) Add({EffectKind::kWithdrawn, one.step, core::GateKind::kWindow, WhyClosed(one)});
        return;
      case Beside::State::kPaused:
        return LookAtPaused(one);
      case Beside::State::kPausedByWindow:
        if (!was_open && IsOpen(one)) {
          Add({EffectKind::kResumed, one.step, std::nullopt, "its window is open"});
          return;
        }
        return LookAtPaused(one);
    }
  }

  std::string WhyClosed(const Beside& one) {
    const core::Schedule& schedule = planner_.ScheduleOf(one.hours, now_);
    const core::WindowStanding standing = planner_.StandingOf(one.hours, now_);
    if (!standing.edge) return "its window is closed for good";
    return fmt::format("its window is closed; it opens {}",
                       core::MomentText(*standing.edge, schedule.front().windows.front().zone));
  }

  void LookAtPaused(const Beside& one) {
    const ShapePtr before = ShapeIn(shapes_before_, one.profiles);
    const ShapePtr after = ShapeIn(shapes_after_, one.profiles);
    if (before->resolved && !after->resolved) {
      Add({EffectKind::kHeld, one.step, core::GateKind::kHeld, after->why_not});
    } else if (!before->resolved && after->resolved) {
      Add({EffectKind::kOpened, one.step, std::nullopt, core::DescribeShape(*after->resolved)});
    } else if (before->resolved && *before->resolved != *after->resolved) {
      Add({EffectKind::kReshaped, one.step, std::nullopt, Reshaping(*before->resolved, *after->resolved)});
    }
  }

  using Shapes = std::map<std::vector<std::string>, ShapePtr>;
  ShapePtr ShapeIn(Shapes& shapes, const std::vector<std::string>& profiles) const {
    ShapePtr& known = shapes[profiles];
    if (!known) known = MakeShape(planner_.registry(), profiles);
    return known;
  }

  // --- All

  Forecast Take(size_t most_effects) {
    Forecast forecast;
    for (const Effect& effect : effects_) forecast.counts[effect.kind] += 1;
    std::sort(effects_.begin(), effects_.end(),
              [](const Effect& a, const Effect& b) { return std::pair(a.kind, a.step) < std::pair(b.kind, b.step); });
    if (effects_.size() > most_effects) effects_.resize(most_effects);
    forecast.effects = std::move(effects_);
    for (auto& [key, over] : OverNow(planner_, now_)) {
      const auto before = over_before_.find(key);
      const bool was =
          before != over_before_.end() && before->second.used - before->second.limit >= over.used - over.limit;
      if (!was) forecast.over.push_back(std::move(over));
    }
    return forecast;
  }

  Planner& planner_;
  const std::vector<Beside>& beside_;
  const absl::Time now_;
  std::map<core::StepRef, Before> before_;
  std::vector<bool> open_before_;  // of beside_
  std::map<std::pair<std::string, std::string>, OverQuota> over_before_;
  Shapes shapes_before_;  // of those of beside_ that are paused
  Shapes shapes_after_;
  std::vector<Effect> effects_;
};

}  // namespace

Forecast Foresee(const WhatIf& what_if, size_t most_effects) {
  Planner planner(what_if.image);
  Foretelling foretelling(planner, what_if.beside, what_if.now);
  foretelling.LookBefore();
  return foretelling.LookAfter(what_if.change, most_effects);
}

}  // namespace tp::plan
