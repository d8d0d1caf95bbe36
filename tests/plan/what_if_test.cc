// What a change of rules would do, against making it.
#include "plan/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <set>

#include <fmt/format.h>

#include "plan/planner.h"

namespace tp::plan {
namespace {

using core::GateKind;
using testing::HasSubstr;

std::shared_ptr<core::Registry> MakeRegistry(int nodes) {
  auto registry = std::make_shared<core::Registry>();
  core::Executor executor;
  executor.name = "gpu/kube";
  executor.provider = "gpu";
  executor.profile = "kube";
  executor.backend = "kubernetes_job";
  executor.config_json = "{}";
  registry->executors[executor.name] = executor;
  core::Series series;
  series.name = "g";
  series.gpus_per_node = 4;
  series.executor = series.executor_distributed = executor.name;
  for (int i = 1; i <= nodes; ++i) series.nodes.push_back({.name = fmt::format("n{}", i), .address = "10.0.0.1"});
  registry->series["g"] = series;
  for (const char* name : {"g", "big"}) {
    core::Profile profile;
    profile.name = name;
    profile.series = "g";
    registry->profiles[name] = profile;
  }
  return registry;
}

// Open from 8 to 20 o'clock, UTC.
void AddHours(core::Registry& registry) {
  core::Window window;
  for (int day = 0; day < 7; ++day) window.open.push_back({day, 8 * 60, 20 * 60});
  registry.series["g"].windows = {window};
}

core::QuotaRule Gpus(const std::string& user, int64_t gpus) {
  core::QuotaRule rule;
  rule.id = 1;
  rule.user = user;
  rule.limits.gpus = gpus;
  return rule;
}

using Effects = std::map<core::StepRef, std::pair<EffectKind, std::optional<GateKind>>>;

Effects ByStep(const Forecast& forecast) {
  Effects effects;
  for (const Effect& effect : forecast.effects) effects[effect.step] = {effect.kind, effect.gate};
  return effects;
}

// Of this thread.
double ProcessorMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

class WhatIfTest : public testing::Test {
 protected:
  core::StepRef Submit(const std::string& owner, const std::string& profile, bool held = false) {
    core::RunWithSteps run;
    run.run.n = static_cast<int64_t>(runs_.size()) + 1;
    run.run.owner = owner;
    run.run.created_at = now_;
    core::Step& step = run.steps.emplace_back();
    step.ref = {run.run.n, 0};
    step.spec.profiles = {profile};
    step.hold.owner = held;
    planner_.Follow(run, step, now_);
    runs_[run.run.n] = run;
    return step.ref;
  }

  // What starts now, started.
  std::set<core::StepRef> Turn() {
    std::set<core::StepRef> started;
    planner_.BeginTurn(now_);
    while (auto start = planner_.Next()) {
      core::RunWithSteps& run = runs_.at(start->step.run);
      core::Step& step = run.steps[0];
      step.state = core::JobState::kRunning;
      step.attempt.emplace();
      step.attempt->shape = start->shape;
      step.attempt->placement = start->placement;
      planner_.Follow(run, step, now_);
      started.insert(start->step);
    }
    return started;
  }

  Forecast Ask(const Change& change, std::vector<Beside> beside = {}, size_t most = 1000) const {
    return Foresee({.image = planner_.TakeImage(), .beside = std::move(beside), .change = change, .now = now_}, most);
  }

  static Change Reload(std::shared_ptr<const core::Registry> registry) {
    Change change;
    change.registry = std::move(registry);
    return change;
  }
  static Change Put(core::QuotaRule rule) {
    Change change;
    change.put_rules.push_back(std::move(rule));
    return change;
  }

  Beside RunningOne(core::StepRef ref, Beside::State state = Beside::State::kRunning) const {
    Beside beside;
    beside.step = ref;
    beside.state = state;
    beside.hours = runs_.at(ref.run).steps[0].attempt->shape;
    return beside;
  }

  const core::Policy policy_;
  absl::Time now_ = absl::FromCivil(absl::CivilHour(2026, 11, 30, 22), absl::UTCTimeZone());
  Planner planner_{policy_, absl::UTCTimeZone(), MakeRegistry(2)};
  std::map<int64_t, core::RunWithSteps> runs_;
};

TEST_F(WhatIfTest, ARaisedQuotaReleasesWhatHasRoomAndOpensTheRest) {
  planner_.PutRule(Gpus("ana", 0));
  std::vector<core::StepRef> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(Submit("ana", "g:4"));
  const core::StepRef held = Submit("ana", "g:4", /*held=*/true);
  EXPECT_TRUE(Turn().empty());
  const Forecast forecast = Ask(Put(Gpus("ana", 100)));
  EXPECT_EQ(ByStep(forecast), (Effects{{steps[0], {EffectKind::kReleased, std::nullopt}},
                                       {steps[1], {EffectKind::kReleased, std::nullopt}},
                                       {steps[2], {EffectKind::kOpened, GateKind::kCapacity}}}));
  EXPECT_FALSE(ByStep(forecast).contains(held)) << "its owner's hold stays";
  EXPECT_EQ(forecast.effects[0].sentence, "g:4 = 1 node x 4");
  planner_.PutRule(Gpus("ana", 100));
  EXPECT_EQ(Turn(), (std::set<core::StepRef>{steps[0], steps[1]}));
}

TEST_F(WhatIfTest, ALoweredQuotaHoldsWhatItMetAndNamesWhoIsOver) {
  Submit("ana", "g:4");
  Submit("ben", "g:4");
  const core::StepRef waits = Submit("ana", "g:4");
  Submit("ben", "g:4");
  EXPECT_EQ(Turn().size(), 2u);
  const Forecast forecast = Ask(Put(Gpus("ana", 1)));
  EXPECT_EQ(ByStep(forecast), (Effects{{waits, {EffectKind::kHeld, GateKind::kQuotaGpus}}}));
  EXPECT_THAT(forecast.effects[0].sentence, HasSubstr("4 of 1 in use (over by 3)"));
  ASSERT_EQ(forecast.over.size(), 1u);
  EXPECT_EQ(forecast.over[0].user, "ana");
  EXPECT_EQ(forecast.over[0].what, "gpus");
  EXPECT_EQ(forecast.over[0].used - forecast.over[0].limit, 3);
  planner_.PutRule(Gpus("ana", 1));
  EXPECT_TRUE(Ask(Put(Gpus("ana", 1))).effects.empty()) << "it holds already";
  EXPECT_TRUE(Ask(Put(Gpus("ana", 2))).over.empty()) << "over by less than before";
}

TEST_F(WhatIfTest, WhatStartsInAnyCaseIsNoEffect) {
  Submit("ana", "g:4");
  EXPECT_TRUE(Ask(Put(Gpus("ana", 100))).effects.empty());
  EXPECT_EQ(Turn().size(), 1u) << "and was left alone";
}

TEST_F(WhatIfTest, AShrinkHoldsTheLargerOnesAndADroppedProfileAllOfIts) {
  for (int i = 0; i < 2; ++i) Submit("ana", "g:4");
  const core::StepRef large = Submit("ana", "g:8");
  const core::StepRef large_held = Submit("ana", "g:8", /*held=*/true);
  const core::StepRef big = Submit("ben", "big:4");
  Submit("ben", "g:4");
  EXPECT_EQ(Turn().size(), 2u);
  auto registry = MakeRegistry(1);
  registry->profiles.erase("big");
  Beside paused;
  paused.step = {77, 0};
  paused.state = Beside::State::kPaused;
  paused.profiles = {"big:4"};
  const Forecast forecast = Ask(Reload(registry), {paused});
  const std::pair<EffectKind, std::optional<GateKind>> held = {EffectKind::kHeld, GateKind::kHeld};
  EXPECT_EQ(ByStep(forecast), (Effects{{large, held}, {large_held, held}, {big, held}, {{77, 0}, held}}));
  EXPECT_EQ(forecast.counts, (std::map<EffectKind, int64_t>{{EffectKind::kHeld, 4}}));
  EXPECT_THAT(forecast.effects[0].sentence, HasSubstr("has only 1 node x 4"));
  EXPECT_THAT(forecast.effects[2].sentence, HasSubstr("big"));
}

TEST_F(WhatIfTest, AClosedWindowPausesWithdrawsAndHolds) {
  const core::StepRef running = Submit("ana", "g:4");
  const core::StepRef pending = Submit("ana", "g:4");
  const core::StepRef waits = Submit("ana", "g:4");
  EXPECT_EQ(Turn().size(), 2u);
  auto registry = MakeRegistry(2);
  AddHours(*registry);
  const std::vector<Beside> beside = {RunningOne(running), RunningOne(pending, Beside::State::kPending)};
  const Forecast forecast = Ask(Reload(registry), beside);
  EXPECT_EQ(ByStep(forecast), (Effects{{running, {EffectKind::kPaused, GateKind::kWindow}},
                                       {pending, {EffectKind::kWithdrawn, GateKind::kWindow}},
                                       {waits, {EffectKind::kHeld, GateKind::kWindow}}}));
  EXPECT_EQ(forecast.effects[1].sentence, "its window is closed; it opens Tue 2026-12-01 08:00 UTC");

  // An hour of an admin's lets all go on.
  planner_.SetRegistry(registry, now_);
  Turn();
  Beside by_window;
  by_window.step = {77, 0};
  by_window.state = Beside::State::kPausedByWindow;
  by_window.profiles = {"g:4"};
  Change hold;
  hold.held_open["g"] = now_ + absl::Hours(1);
  EXPECT_EQ(ByStep(Ask(hold, {by_window})), (Effects{{waits, {EffectKind::kOpened, GateKind::kCapacity}},
                                                     {{77, 0}, {EffectKind::kResumed, std::nullopt}}}));
}

TEST_F(WhatIfTest, OtherSettingsReshape) {
  for (int i = 0; i < 2; ++i) Submit("ana", "g:4");
  const core::StepRef waits = Submit("ana", "g:4");
  Turn();
  auto registry = MakeRegistry(2);
  registry->profiles["g"].base.env = {{"A", "1"}};
  const Forecast forecast = Ask(Reload(registry));
  EXPECT_EQ(ByStep(forecast), (Effects{{waits, {EffectKind::kReshaped, std::nullopt}}}));
  EXPECT_EQ(forecast.effects[0].sentence, "g:4 = 1 node x 4, with other settings");
}

TEST_F(WhatIfTest, CountsHaveAllAndEffectsAsManyAsAskedFor) {
  for (int i = 0; i < 50; ++i) Submit("ana", "g:4");
  Turn();
  const Forecast forecast = Ask(Put(Gpus("ana", 0)), {}, 5);
  EXPECT_EQ(forecast.counts, (std::map<EffectKind, int64_t>{{EffectKind::kHeld, 48}}));
  EXPECT_EQ(forecast.effects.size(), 5u);
}

TEST_F(WhatIfTest, AnImageKeepsWhatThePlannerLetsGo) {
  const core::StepRef runs = Submit("ana", "g:8");
  runs_.at(runs.run).steps[0].spec.time_limit = absl::Hours(1);
  planner_.Follow(runs_.at(runs.run), runs_.at(runs.run).steps[0], now_);
  EXPECT_EQ(Turn().size(), 1u);
  const core::StepRef waits = Submit("ana", "g:8");
  const Image image = planner_.TakeImage();
  core::RunWithSteps& run = runs_.at(runs.run);
  run.steps[0].state = core::JobState::kStopped;
  run.steps[0].attempt.reset();
  planner_.Follow(run, run.steps[0], now_);
  Planner other(image);
  other.BeginTurn(now_);
  EXPECT_FALSE(other.Next());
  EXPECT_EQ(other.reservations().at(waits).start, now_ + absl::Hours(1));
  EXPECT_EQ(Turn(), (std::set<core::StepRef>{waits}));
}

// What the loop pays for: an image. Each step a class of its own is the worst that a queue can be.
TEST_F(WhatIfTest, AnImageOfTenThousandIsTakenWithinATurn) {
  constexpr int kSteps = 10'000;
  for (int i = 0; i < kSteps; ++i) Submit(fmt::format("user-{}", i), "g:4");
  Turn();
  const double start = ProcessorMs();
  const Image image = planner_.TakeImage();
  const double taken = ProcessorMs();
  const Forecast forecast = Ask(Reload(MakeRegistry(1)));
  fmt::print("image {:.1f} ms, image and forecast {:.1f} ms\n", taken - start, ProcessorMs() - taken);
  EXPECT_EQ(image.waiting.size(), size_t{kSteps} - 2);
  EXPECT_TRUE(forecast.effects.empty()) << "all of them wait for room, before and after";
}

}  // namespace
}  // namespace tp::plan
