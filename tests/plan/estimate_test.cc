// When waiting steps start, by small cases worked out by hand and by random ones that are then played.
#include "plan/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "core/ledger.h"
#include "plan/estimate_record.h"

namespace tp::plan {
namespace {

using absl::Hours;
using absl::Minutes;
using std::nullopt;

constexpr absl::CivilDay kMonday(2026, 11, 30);

// A planner in virtual time: what starts runs for exactly its time limit.
class EstimateTest : public ::testing::Test {
 protected:
  static std::shared_ptr<core::Registry> FourNodes() {
    auto registry = std::make_shared<core::Registry>();
    core::Executor executor;
    executor.name = "gpu/default";
    executor.provider = "gpu";
    executor.profile = "default";
    executor.backend = "local";
    executor.config_json = "{}";
    registry->executors[executor.name] = executor;
    core::Series series;
    series.name = "h200";
    series.gpus_per_node = 8;
    series.executor = series.executor_distributed = executor.name;
    for (int i = 1; i <= 4; ++i) series.nodes.push_back({.name = "n" + std::to_string(i), .address = "127.0.0.1"});
    registry->series["h200"] = series;
    core::Profile profile;
    profile.name = profile.series = "h200";
    registry->profiles["h200"] = profile;
    return registry;
  }

  Planner& planner() {
    if (!planner_) {
      planner_ = std::make_unique<Planner>(policy_, absl::UTCTimeZone(), registry_);
      planner_->SetStorage(core::kEverybody, {.bytes = 0, .scanned_at = now_});
    }
    return *planner_;
  }

  core::StepRef Submit(const std::string& owner, const std::string& profile, std::optional<absl::Duration> limit,
                       int32_t priority = 50) {
    core::RunWithSteps run;
    run.run.n = static_cast<int64_t>(runs_.size()) + 1;
    run.run.slug = "run";
    run.run.owner = owner;
    run.run.priority = priority;
    run.run.created_at = now_;
    core::Step step;
    step.ref = {run.run.n, 0};
    step.spec.profiles = {profile};
    step.spec.time_limit = limit;
    step.entered_at = now_;
    run.steps = {step};
    Follow(runs_[run.run.n] = run);
    return step.ref;
  }

  void Follow(const core::RunWithSteps& run) { planner().Follow(run, run.steps[0], now_); }
  core::Step& StepOf(core::StepRef ref) { return runs_.at(ref.run).steps[0]; }

  void LimitGpus(const std::string& user, int64_t gpus) {
    core::QuotaRule rule;
    rule.id = ++rules_;
    rule.user = user;
    rule.limits.gpus = gpus;
    planner().PutRule(rule);
  }

  void OpenOnly(int from_hour, int to_hour) {
    core::Window window;
    window.zone = absl::UTCTimeZone();
    for (int day = 0; day < 7; ++day) {
      window.open.push_back({.weekday = day, .from_minute = from_hour * 60, .to_minute = to_hour * 60});
    }
    registry_->series["h200"].windows.push_back(window);
  }

  void Look() {
    planner().BeginTurn(now_);
    while (auto start = planner().Next()) {
      core::RunWithSteps& run = runs_.at(start->step.run);
      core::Step& step = run.steps[0];
      step.state = core::JobState::kRunning;
      step.entered_at = now_;
      core::Attempt& attempt = step.attempt.emplace();
      attempt.placement = std::move(start->placement);
      core::Meter& meter = attempt.meter.emplace();
      meter.opened.unix_us = absl::ToUnixMicros(now_);
      meter.seen_at = now_;
      Follow(run);
      started_[start->step] = now_;
      if (step.spec.time_limit) ends_.insert({now_ + *step.spec.time_limit, start->step});
    }
  }

  // Plays until then.
  void Play(absl::Time until) {
    Look();
    while (true) {
      std::optional<absl::Time> next = planner().NextWake();
      if (!ends_.empty() && (!next || ends_.begin()->first < *next)) next = ends_.begin()->first;
      if (!next || *next > until) break;
      now_ = *next;
      while (!ends_.empty() && ends_.begin()->first <= now_) End(ends_.extract(ends_.begin()).value().second);
      Look();
    }
    now_ = until;
  }

  void End(core::StepRef ref) {
    core::Step& step = StepOf(ref);
    core::Meter meter = *step.attempt->meter;
    meter.closed_unix_us = absl::ToUnixMicros(now_);
    const core::LedgerOwner owner{.step = ref, .attempt = 1, .owner = runs_.at(ref.run).run.owner, .project = ""};
    for (const core::LedgerRow& row : core::LedgerRows(owner, meter, step.attempt->placement, absl::UTCTimeZone())) {
      planner().AddSettled(row.month, row.owner, row.gpu_ms);
      planner().AddUse(row.owner, row.end_unix_ms, row.gpu_ms);
    }
    step.state = core::JobState::kSucceeded;
    step.attempt.reset();
    Follow(runs_.at(ref.run));
  }

  std::vector<core::StepRef> Waiting() const {
    std::vector<core::StepRef> waiting;
    for (const auto& [n, run] : runs_) {
      if (run.steps[0].state == core::JobState::kQueued) waiting.push_back(run.steps[0].ref);
    }
    return waiting;
  }

  ForecastInput Gather() {
    const auto find = [this](int64_t n) -> const core::RunWithSteps* {
      const auto found = runs_.find(n);
      return found == runs_.end() ? nullptr : &found->second;
    };
    return GatherForecast(planner(), find, Waiting(), {}, now_);
  }
  std::map<core::StepRef, StartEstimate> Estimates() { return EstimateStarts(Gather()); }
  std::optional<absl::Duration> In(core::StepRef ref) {
    const auto at = Estimates().at(ref).starts_at;
    return at ? std::optional(*at - now_) : nullopt;
  }
  std::string Why(core::StepRef ref, bool named = true) { return WhyNoEstimate(Estimates().at(ref), named); }

  core::Policy policy_;
  std::shared_ptr<core::Registry> registry_ = FourNodes();
  absl::Time now_ = absl::FromCivil(kMonday, absl::UTCTimeZone()) + Hours(9);
  std::unique_ptr<Planner> planner_;
  std::map<int64_t, core::RunWithSteps> runs_;
  std::map<core::StepRef, absl::Time> started_;
  std::set<std::pair<absl::Time, core::StepRef>> ends_;
  int64_t rules_ = 0;
};

TEST_F(EstimateTest, OneAfterTheOtherByTheirLimits) {
  Submit("ann", "h200:32", Hours(2));
  const core::StepRef second = Submit("bob", "h200:32", Hours(3));
  const core::StepRef third = Submit("ann", "h200:8", Hours(3));
  Look();
  EXPECT_EQ(In(second), Hours(2));
  EXPECT_EQ(In(third), Hours(5));
  now_ += Minutes(30);
  EXPECT_EQ(In(second), Minutes(90));
}

TEST_F(EstimateTest, AShortOnePassesBehindAReservation) {
  Submit("ann", "h200:24", Hours(2));
  Look();
  const core::StepRef large = Submit("bob", "h200:32", Hours(1));
  const core::StepRef no_limit = Submit("cleo", "h200:8", nullopt);
  const core::StepRef fits = Submit("dan", "h200:8", Hours(2));
  EXPECT_EQ(In(large), Hours(2));
  EXPECT_EQ(In(fits), absl::ZeroDuration()) << "it is over when the reservation begins";
  EXPECT_EQ(In(no_limit), Hours(3));
}

TEST_F(EstimateTest, WhatNobodyLimitsHasNoEnd) {
  Submit("ann", "h200:32", nullopt);
  Look();
  const core::StepRef blocked = Submit("bob", "h200:8", Hours(1));
  EXPECT_EQ(In(blocked), nullopt);
  EXPECT_EQ(Why(blocked), "run-1 ahead has no time limit");
  EXPECT_EQ(Why(blocked, false), "a job ahead has no time limit");
}

TEST_F(EstimateTest, NorWhatStartsAfterAnotherThatNobodyLimits) {
  Submit("ann", "h200:32", Hours(1));
  Look();
  const core::StepRef endless = Submit("bob", "h200:32", nullopt);
  const core::StepRef behind = Submit("cleo", "h200:8", Hours(2));
  EXPECT_EQ(In(endless), Hours(1));
  EXPECT_EQ(Why(behind), "run-2 ahead has no time limit");
}

TEST_F(EstimateTest, QuotaIsReleasedWhenItsOwnersJobsEnd) {
  LimitGpus("ann", 8);
  LimitGpus("bob", 4);
  Submit("ann", "h200:8", Hours(4));
  const core::StepRef next = Submit("ann", "h200:8", Hours(1));
  const core::StepRef after = Submit("ann", "h200:8", Hours(1));
  const core::StepRef too_large = Submit("bob", "h200:8", Hours(1));
  Look();
  EXPECT_EQ(In(next), Hours(4));
  EXPECT_EQ(In(after), Hours(5));
  EXPECT_EQ(Why(too_large), "the quota is too small for it");
}

TEST_F(EstimateTest, AnOwnersEndlessJobKeepsItsQuota) {
  LimitGpus("ann", 8);
  Submit("bob", "h200:8", nullopt);
  Submit("ann", "h200:8", nullopt);
  const core::StepRef next = Submit("ann", "h200:8", Hours(1));
  Look();
  EXPECT_EQ(Why(next), "run-2 ahead has no time limit");
}

TEST_F(EstimateTest, GpuHoursComeBackWithTheMonth) {
  registry_->quota_defaults.gpu_hours = 1;
  now_ = absl::FromCivil(kMonday, absl::UTCTimeZone()) + Hours(22);
  Submit("ann", "h200:8", Minutes(30));
  Look();
  Play(now_ + Minutes(45));
  const core::StepRef next = Submit("ann", "h200:8", Hours(1));
  Look();
  EXPECT_EQ(In(next), Minutes(75));
}

TEST_F(EstimateTest, AWindowOpensAndPausesWhatRuns) {
  OpenOnly(19, 23);
  const core::StepRef first = Submit("ann", "h200:32", Hours(3));
  const core::StepRef second = Submit("bob", "h200:32", Hours(2));
  Look();
  EXPECT_EQ(In(first), Hours(10));
  EXPECT_EQ(In(second), Hours(34)) << "after the first there is only an hour left of the evening";
}

TEST_F(EstimateTest, AJobThatItsWindowPausesComesBackAndIsWaitedFor) {
  now_ = absl::FromCivil(kMonday, absl::UTCTimeZone()) + Hours(20);
  OpenOnly(19, 23);
  registry_->series["h200"].windows[0].min_remaining = Hours(1);
  Submit("ann", "h200:32", Hours(6));  // fits no evening: min_remaining lets it in
  Look();
  ASSERT_EQ(started_.size(), 1u);
  const core::StepRef next = Submit("bob", "h200:32", Hours(1));
  // 20 to 23, then 19 to 22 the next day.
  EXPECT_EQ(In(next), Hours(26));
}

TEST_F(EstimateTest, AWindowThatNeverOpens) {
  registry_->series["h200"].windows.push_back({});
  registry_->series["h200"].windows[0].zone = absl::UTCTimeZone();
  const core::StepRef step = Submit("ann", "h200:8", Hours(1));
  Look();
  EXPECT_EQ(Why(step), "its window never opens");
}

TEST_F(EstimateTest, OwnGatesOpenByThemselvesOrBySomebody) {
  const core::StepRef cooling = Submit("ann", "h200:8", Hours(1));
  StepOf(cooling).cooldown_until = now_ + Minutes(3);
  StepOf(cooling).backoff_until = now_ + Minutes(5);
  Follow(runs_.at(cooling.run));
  const core::StepRef held = Submit("bob", "h200:8", Hours(1));
  StepOf(held).hold.owner = true;
  Follow(runs_.at(held.run));
  const core::StepRef gone = Submit("cleo", "x:8", Hours(1));
  const core::StepRef large = Submit("cleo", "h200:64", Hours(1));
  Look();
  EXPECT_EQ(In(cooling), Minutes(5));
  EXPECT_EQ(Why(held), "it is held");
  EXPECT_EQ(Why(gone), "its shape is not valid");
  EXPECT_THAT(Why(large), testing::AnyOf("it needs more than its series has", "its shape is not valid"));
}

TEST_F(EstimateTest, StorageThatIsOverOpensByRemovalOnly) {
  registry_->quota_defaults.storage_bytes = 10;
  const core::StepRef step = Submit("ann", "h200:8", Hours(1));
  planner().SetStorage("ann", {.bytes = 10, .scanned_at = now_});
  Look();
  EXPECT_EQ(Why(step), "storage is over quota or not measured yet");
}

TEST_F(EstimateTest, BeyondTheHorizonThereIsNone) {
  Submit("ann", "h200:32", kEstimateHorizon + Hours(1));
  Look();
  const core::StepRef next = Submit("bob", "h200:8", Hours(1));
  EXPECT_EQ(Why(next), "not within 14 days");
  now_ += Hours(1);
  EXPECT_EQ(In(next), kEstimateHorizon);
}

TEST_F(EstimateTest, WhatIsPastItsLimitOrBeingEndedIsTakenToEndNow) {
  const core::StepRef past = Submit("ann", "h200:32", Hours(1));
  Look();
  const core::StepRef next = Submit("bob", "h200:8", Hours(1));
  now_ += Hours(2);
  EXPECT_EQ(In(next), absl::ZeroDuration());
  StepOf(past).spec.time_limit.reset();
  Follow(runs_.at(past.run));
  EXPECT_EQ(In(next), nullopt);
  StepOf(past).attempt->ending = core::Ending{};
  EXPECT_EQ(In(next), policy_.stop_grace);
}

TEST_F(EstimateTest, SharesDecideAmongEquals) {
  policy_.fair_share = true;
  Submit("ann", "h200:32", Hours(1));
  Look();
  const core::StepRef ann = Submit("ann", "h200:32", Hours(1));
  const core::StepRef bob = Submit("bob", "h200:32", Hours(1));
  Play(now_ + Minutes(10));
  EXPECT_EQ(In(bob), Minutes(50));
  EXPECT_EQ(In(ann), Minutes(110));
}

TEST_F(EstimateTest, TheSameInputGivesTheSame) {
  for (int i = 0; i < 40; ++i)
    Submit("u" + std::to_string(i % 5), "h200:" + std::to_string(1 + i % 8), Hours(1 + i % 3));
  Look();
  const ForecastInput input = Gather();
  EXPECT_EQ(EstimateStarts(input), EstimateStarts(input));
}

// --- Played --------------------------------------------------------------------------------------------

class PlayedEstimates : public EstimateTest, public testing::WithParamInterface<unsigned> {
 protected:
  int Pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  core::StepRef SubmitAny() {
    static constexpr int kCards[] = {1, 2, 4, 8, 16, 24, 32};
    return Submit("u" + std::to_string(Pick(1, 4)), "h200:" + std::to_string(kCards[Pick(0, 6)]), Minutes(Pick(1, 240)),
                  Pick(0, 3) == 0 ? 60 : 50);
  }

  std::mt19937 random_{GetParam()};
};

// Where nothing else is submitted everything starts as estimated.
TEST_P(PlayedEstimates, AllComeTrueWhereNothingElseComes) {
  if (Pick(0, 1) == 1) registry_->quota_defaults.jobs = 2;
  if (Pick(0, 1) == 1) LimitGpus("u1", 8);
  if (Pick(0, 1) == 1) LimitGpus("u2", 16);
  for (int i = 0; i < 60; ++i) {
    SubmitAny();
    Play(now_ + Minutes(Pick(0, 5)));
  }
  Look();
  const auto estimates = Estimates();
  Play(now_ + kEstimateHorizon);
  ASSERT_FALSE(estimates.empty());
  for (const auto& [ref, estimate] : estimates) {
    const auto started = started_.find(ref);
    const auto actual = started == started_.end() ? nullopt : std::optional(started->second);
    EXPECT_EQ(estimate.starts_at, actual) << "run " << ref.run << ": " << WhyNoEstimate(estimate, true);
  }
}

// Whatever is submitted behind it: the first in order that waits for room only starts as estimated.
TEST_P(PlayedEstimates, TheFirstInOrderComesTrueWhateverFollows) {
  std::map<core::StepRef, absl::Time> first;
  const auto submit = [&] {
    static constexpr int kCards[] = {1, 2, 4, 8, 16, 24, 32};
    Submit("u" + std::to_string(Pick(1, 4)), "h200:" + std::to_string(kCards[Pick(0, 6)]), Minutes(Pick(1, 240)));
  };
  for (int i = 0; i < 150; ++i) {
    submit();
    Look();
    if (const auto waiting = Waiting(); !waiting.empty()) {
      const StartEstimate estimate = Estimates().at(waiting.front());
      ASSERT_TRUE(estimate.starts_at) << WhyNoEstimate(estimate, true);
      const auto [known, added] = first.try_emplace(waiting.front(), *estimate.starts_at);
      EXPECT_EQ(known->second, *estimate.starts_at) << "it stays as it was";
    }
    Play(now_ + Minutes(Pick(1, 30)));
  }
  Play(now_ + kEstimateHorizon);
  ASSERT_GT(first.size(), 10u);
  for (const auto& [ref, estimated] : first) EXPECT_EQ(started_.at(ref), estimated) << "run " << ref.run;
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlayedEstimates, testing::Range(1U, 21U));

// --- How far off ---------------------------------------------------------------------------------------

TEST(EstimateRecordTest, MedianNinetiethAndWhichWay) {
  EstimateRecord record;
  EXPECT_EQ(record.errors(), nullopt);
  const absl::Time estimated = absl::FromUnixSeconds(1'800'000'000);
  for (int i = 1; i <= 10; ++i) record.Add(estimated, estimated - Minutes(i));
  record.Add(estimated, estimated + Minutes(30));
  EXPECT_EQ(record.errors(),
            (EstimateErrors{.starts = 11, .median_off = Minutes(6), .p90_off = Minutes(10), .bias = -Minutes(5)}));
}

TEST(EstimateRecordTest, OnlyTheLastOnesCount) {
  EstimateRecord record;
  const absl::Time estimated = absl::FromUnixSeconds(1'800'000'000);
  for (size_t i = 0; i < EstimateRecord::kStarts; ++i) record.Add(estimated, estimated + Hours(9));
  for (size_t i = 0; i < EstimateRecord::kStarts; ++i) record.Add(estimated, estimated);
  EXPECT_EQ(record.errors()->starts, static_cast<int64_t>(EstimateRecord::kStarts));
  EXPECT_EQ(record.errors()->p90_off, absl::ZeroDuration());
}

}  // namespace
}  // namespace tp::plan
