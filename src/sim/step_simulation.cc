#include "sim/step_simulation.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"
#include "base/strings.h"
#include "core/apply.h"
#include "core/card_health.h"
#include "core/judge.h"
#include "core/launch_plan.h"
#include "core/ledger.h"
#include "core/placement.h"
#include "core/resource.h"
#include "sim/bills.h"
#include "sim/card_watch.h"
#include "sim/fleet.h"
#include "sim/monitor.h"
#include "sim/row_rules.h"
#include "sim/sink.h"
#include "sim/units.h"

namespace tp::sim {
namespace {

using core::JobState;

constexpr Span kBetweenRequests = {10 * kMillisecond, 20 * kSecond};
constexpr Span kUntilMended = {5 * kSecond, 3 * kMinute};
constexpr Span kSecondThought = {kMillisecond, 5 * kSecond};
constexpr Span kBetweenEdges = {5 * kSecond, 2 * kMinute};         // of the schedule window
constexpr Span kBetweenLooks = {100 * kMillisecond, 2 * kSecond};  // of the planner
// Its events are cheap, and what it is for is rare.
constexpr int64_t kEventsEach = 6;
constexpr int64_t kLongestQuiet = 48 * kHour;

// A hesitant engine, where requests, fences and claims meet, and more of what is rare elsewhere.
Options Hesitant(Options options, Rng& rng) {
  const auto at_times = [&](int& permille, int most) {
    permille = std::max(permille, static_cast<int>(rng.Between(0, most)));
  };
  const bool slow = rng.Chance(500);
  options.pace.call = {slow ? 500 * kMillisecond : kMillisecond,
                       rng.Draw({slow ? 2 * kSecond : 10 * kMillisecond, 10 * kSecond})};
  options.pace.pending = {rng.Chance(500) ? 2 * kSecond : 0, 20 * kSecond};
  options.pace.woken = std::max(options.pace.woken, static_cast<int>(rng.Between(0, 1000)));
  options.pace.verify = {0, rng.Draw({kSecond, 2 * kMinute})};
  options.pace.visibility = {};
  options.pace.claim_to_start = {kMillisecond, 100 * kMillisecond};
  at_times(options.engine.indeterminate, 800);
  at_times(options.engine.call_fails, 900);
  at_times(options.jobs.image, 60);
  at_times(options.jobs.no_records, 150);
  at_times(options.jobs.cannot_start, 100);
  at_times(options.jobs.never_up, 150);
  return options;
}

class StepSimulation {
 public:
  explicit StepSimulation(const SimulationPlan& plan)
      : plan_(plan),
        rng_(~plan.seed),
        options_(Hesitant(Options::Draw(plan.seed, rng_), rng_)),
        policy_(options_.policy),
        timeline_(options_.start_unix_us),
        journal_(timeline_, plan.print),
        world_(options_, timeline_, rng_, journal_),
        sink_(options_, timeline_, rng_, journal_, world_),
        rules_(*plan.defects.table, policy_, timeline_, journal_, world_),
        table_(*plan.defects.table, rules_),
        fleet_(MakeFleet(options_, false)),
        cards_(options_, timeline_, rng_, journal_, world_) {
    world_.SetChanged([this](const std::string& key) { sink_.Wake(key); });
    sink_.Connect({
        .answered = [this](const loop::EffectAnswered& answered) { Answered(answered); },
        .observed = [this](const loop::AttemptObserved& seen) { Observed(seen); },
    });
    cards_.Connect({.seen = [this](const loop::CardsSeen& seen) { Looked(seen); },
                    .broke = [this](const core::NodePart& part) { MendLater(part); }});
  }

  SimulationResult Run() {
    Submit();
    world_.StartOutages();
    RequestLater();
    WindowLater();
    PlanLater();
    cards_.StartWear();
    cards_.Started();
    while (timeline_.executed() < kEventsEach * plan_.events && !journal_.failed()) timeline_.Step();
    Calm(options_);
    world_.EndOutages();
    calm_ = true;
    SetWindow(true);
    const int64_t deadline_us = timeline_.now_us() + kLongestQuiet;
    while (!journal_.failed() && !AtRest()) {
      if (timeline_.now_us() > deadline_us || !timeline_.Step()) {
        journal_.Break("it does not come to rest: {}", core::StateText(step_, timeline_.now()));
      }
    }
    journal_.Note("in the end it is {}, attempts {}, retries {}", core::Name(step_.state), step_.attempts,
                  step_.retry_count);
    return {plan_.seed,
            journal_.broken(),
            journal_.hash(),
            timeline_.executed(),
            run_.n,
            0,
            {journal_.last().begin(), journal_.last().end()},
            rules_.coverage()};
  }

 private:
  void Submit() {
    run_.n += 1;
    step_ = {};
    step_.ref = {run_.n, 0};
    step_.spec.name = "main";
    step_.spec.argv = {"train"};
    step_.spec.profiles = rng_.Pick(ShapeFlags(options_));
    if (rng_.Chance(300)) step_.spec.time_limit = absl::Microseconds(rng_.Draw({kSecond, options_.pace.run.high_us}));
    if (rng_.Chance(500)) step_.spec.pending_timeout = absl::Seconds(rng_.Between(1, 20));
    if (rng_.Chance(500)) step_.spec.start_timeout = absl::Seconds(rng_.Between(1, 20));
    step_.created_at = timeline_.now();
    step_.entered_at = timeline_.now();
    run_.slug = "job";
    run_.owner = "ada";
    run_.project = "ada";
  }

  // --- Events that come by themselves ---

  void PlanLater() {
    timeline_.In(rng_.Draw(kBetweenLooks), [this] {
      const absl::Time now = timeline_.now();
      const bool waits =
          (step_.cooldown_until && *step_.cooldown_until > now) || (step_.backoff_until && *step_.backoff_until > now);
      if (step_.state == JobState::kQueued && window_open_ && !waits) Admit();
      PlanLater();
    });
  }

  void Admit() {
    core::Admitted admitted;
    admitted.key = core::AttemptKey(kDeployment, {step_.ref, step_.attempts + 1});
    admitted.nonce = fmt::format("{:016x}", rng_.Next());
    admitted.shape = *core::ResolveShape(fleet_, step_.spec.profiles);
    admitted.placement = *core::Capacity(fleet_).Place(admitted.shape, step_.avoid_node);
    Happen(admitted);
  }

  void WindowLater() {
    timeline_.In(rng_.Draw(kBetweenEdges), [this] {
      if (calm_) return;
      SetWindow(!window_open_);
      WindowLater();
    });
  }

  void SetWindow(bool open) {
    window_open_ = open;
    const absl::Duration grace = absl::Seconds(rng_.Between(1, 30));
    if (core::IsTerminal(step_.state)) return;
    if (open) {
      Happen(core::ResumeRequested{core::Holder::kWindow, true});
    } else {
      Happen(core::PauseRequested{core::Holder::kWindow, grace});
    }
  }

  void RequestLater() {
    timeline_.In(rng_.Draw(kBetweenRequests), [this] {
      if (calm_) return;
      Request();
      RequestLater();
    });
  }

  void Request() {
    if (core::IsTerminal(step_.state) && owed_.empty() && rng_.Chance(300)) {
      Submit();
      return;
    }
    const auto person = rng_.Chance(600) ? core::Holder::kOwner : core::Holder::kAdmin;
    const bool snapshot = !rng_.Chance(150);
    switch (rng_.Between(0, 7)) {
      case 0:
        Happen(core::StopRequested{});
        return;
      case 1:
      case 2:
        Happen(core::PauseRequested{person, policy_.pause_grace});
        if (rng_.Chance(500)) ResumeSoon(person);
        return;
      case 3:
      case 4:
        Happen(core::ResumeRequested{person, snapshot});
        return;
      case 5:
      case 6:
        Happen(core::RetryRequested{snapshot});
        return;
      default:
        // The planner says so only of a step that waits.
        if (step_.state != JobState::kQueued && step_.state != JobState::kPaused) return;
        if (rng_.Chance(200)) Happen(core::DependencyFailed{"the step before failed"});
        return;
    }
  }

  // Who pauses and thinks better of it.
  void ResumeSoon(core::Holder by) {
    timeline_.In(rng_.Draw(kSecondThought), [this, by] {
      if (!calm_) Happen(core::ResumeRequested{by, true});
    });
  }

  // A stop that comes when the ranks have just ended.
  void StopSoon() {
    timeline_.In(rng_.Draw(kSecondThought), [this] {
      if (!calm_) Happen(core::StopRequested{});
    });
  }

  // A pause of what has begun to fail before it was up.
  void PauseSoon() {
    timeline_.In(rng_.Draw(kSecondThought), [this] {
      if (!calm_) Happen(core::PauseRequested{core::Holder::kOwner, policy_.pause_grace});
    });
  }

  bool FailsBeforeItIsUp() const {
    return step_.state == JobState::kPending && step_.attempt->ending && step_.attempt->ending->failure;
  }

  void TimerLater() {
    const auto timer = core::NextTimer(step_);
    if (!timer || timer == armed_) return;
    armed_ = timer;
    timeline_.At(absl::ToUnixMicros(*timer), [this, at = *timer] {
      if (armed_ != at) return;
      armed_.reset();
      Happen(core::TimerFired{});
    });
  }

  void MendLater(const core::NodePart& part) {
    timeline_.In(rng_.Draw(kUntilMended), [this, part] {
      world_.MendCard(part);
      mended_[part] = timeline_.wall();
      if (step_.attempt) Happen(core::CardPutBack{.node = part.node, .card = part.card});
    });
  }

  // --- What becomes of them ---

  void Observed(const loop::AttemptObserved& seen) {
    const auto asked = LookAsked();
    const bool watched = step_.attempt && !core::RealCardsOf(*step_.attempt).empty();
    Attend(seen.key, core::Observed{seen.observation, watched});
    if (LookAsked() && LookAsked() != asked) cards_.LookSoon();
  }

  std::optional<absl::Time> LookAsked() const { return step_.attempt ? step_.attempt->sight.look_asked : std::nullopt; }

  void Looked(const loop::CardsSeen& seen) {
    if (!step_.attempt) return;
    const std::vector<core::CardFault> faults = core::FaultsSince(seen.faults, seen.began, mended_);
    Happen(core::CardsLooked{.began = seen.began, .faults = core::FaultsUnder(*step_.attempt, faults)});
  }

  void Answered(const loop::EffectAnswered& answered) {
    const auto owed = owed_.find(answered.outbox_id);
    if (owed == owed_.end()) return;
    const std::string key = owed->second.key;
    std::visit(Overloaded{
                   [&](const LaunchResult& result) { Attend(key, core::LaunchAnswered{result}); },
                   [&](const FenceResult& result) { Attend(key, core::FenceAnswered{result}); },
                   [&](const absl::Status& status) {
                     if (!status.ok()) SendAgain(answered.outbox_id);
                   },
               },
               answered.result);
    const auto* status = std::get_if<absl::Status>(&answered.result);
    if (status == nullptr || status->ok()) owed_.erase(answered.outbox_id);
  }

  void SendAgain(int64_t id) {
    timeline_.In(kSecond, [this, id] {
      if (const auto owed = owed_.find(id); owed != owed_.end()) owed->second.send();
    });
  }

  void Attend(const std::string& key, const core::Event& event) {
    if (step_.attempt && step_.attempt->key == key) Happen(event);
  }

  void Happen(const core::Event& event) {
    if (journal_.failed()) return;
    const Boxed<core::Attempt> before = step_.attempt;
    auto transition = core::Apply(table_.table(), step_, event, timeline_.now(), policy_);
    if (!transition.ok()) {
      if (!core::IsRequest(core::KindOf(event))) journal_.Break("{}", Message(transition.status()));
      return;
    }
    step_ = std::move(transition->next);
    if (std::string broken = core::BrokenInvariant(step_); !broken.empty()) journal_.Break("{}", broken);
    const Boxed<core::Attempt>& attempt = step_.attempt ? step_.attempt : before;
    for (const core::Effect& effect : transition->effects) CarryOut(effect, *attempt);
    if (before && !step_.attempt) sink_.Untrack(before->key);
    if (step_.attempt && core::AllClean(*step_.attempt) && rng_.Chance(100)) StopSoon();
    if (FailsBeforeItIsUp() && rng_.Chance(200)) PauseSoon();
    TimerLater();
  }

  void CarryOut(const core::Effect& effect, const core::Attempt& attempt) {
    AttemptTarget target{attempt.key, attempt.nonce, "", {}};
    const std::string& backend = attempt.shape.backend;
    const int64_t id = next_id_++;
    std::function<void()> send;
    std::visit(Overloaded{
                   [&](const core::LaunchAttempt&) {
                     const auto spec = core::PlanLaunch({"/storage", 1, 1000}, run_, step_);
                     sink_.Track(backend, target);
                     send = [this, id, backend, target, spec = *spec] { sink_.Launch(id, backend, spec, target); };
                   },
                   [&](const core::FenceAttempt&) {
                     send = [this, id, backend, target] { sink_.Fence(id, backend, target); };
                   },
                   [&](const core::SignalAttempt& signal) {
                     send = [this, id, backend, target, level = signal.level] {
                       sink_.Signal(id, backend, target, level);
                     };
                   },
                   [&](const core::RemoveAttempt&) {
                     send = [this, id, backend, target] { sink_.Remove(id, backend, target); };
                   },
                   [&](const core::SettleMeter& settle) {
                     const auto rows = core::LedgerRows({step_.ref, attempt.number, run_.owner, run_.project},
                                                        settle.meter, attempt.placement, absl::UTCTimeZone());
                     CheckBill(attempt.key, rows, world_, journal_);
                   },
               },
               effect);
    if (!send) return;
    owed_[id] = {attempt.key, send};
    send();
  }

  bool AtRest() const { return owed_.empty() && (core::IsTerminal(step_.state) || step_.state == JobState::kPaused); }

  struct Owed {
    std::string key;
    std::function<void()> send;
  };

  const SimulationPlan& plan_;
  Rng rng_;
  Options options_;
  const core::Policy policy_;
  Timeline timeline_;
  Journal journal_;
  World world_;
  SimSink sink_;
  RowRules rules_;
  WatchedTable table_;
  const core::Registry fleet_;
  CardWatch cards_;
  std::map<core::NodePart, absl::Time> mended_;  // when last
  core::Run run_;
  core::Step step_;
  std::map<int64_t, Owed> owed_;
  std::optional<absl::Time> armed_;
  int64_t next_id_ = 1;
  bool window_open_ = true;
  bool calm_ = false;
};

}  // namespace

SimulationResult SimulateStep(const SimulationPlan& plan) { return StepSimulation(plan).Run(); }

}  // namespace tp::sim
