// Estimates against the replay: a random workload whose time limits are exact starts as it was estimated.
#include <gtest/gtest.h>

#include <random>

#include "plan/estimate.h"
#include "simulate/replay.h"

namespace tp::simulate {
namespace {

constexpr int kJobs = 80;

class EstimateReplay : public ::testing::TestWithParam<unsigned> {
 protected:
  EstimateReplay() {
    auto registry = std::make_shared<core::Registry>();
    core::Executor executor;
    executor.name = "gpu/default";
    executor.provider = "gpu";
    executor.profile = "default";
    executor.backend = "kubernetes_job";
    registry->executors[executor.name] = executor;
    for (const char* name : {"x", "y"}) {
      core::Series series;
      series.name = name;
      series.gpus_per_node = 4;
      series.executor = series.executor_distributed = executor.name;
      for (int i = 0; i < 3; ++i) {
        const std::string node = std::string(name) + std::to_string(i);
        series.nodes.push_back({.name = node, .address = node});
      }
      registry->series[name] = series;
      core::Profile profile;
      profile.name = profile.series = name;
      registry->profiles[name] = profile;
    }
    if (Pick(0, 1) == 1) {
      core::Window window;
      for (int day = 0; day < 7; ++day) window.open.push_back({day, Pick(0, 12) * 60, Pick(13, 24) * 60});
      registry->series["x"].windows = {window};
    }
    if (Pick(0, 1) == 1) registry->quota_defaults.gpus = 8;
    if (Pick(0, 2) == 0) registry->quota_defaults.gpu_hours = 60;
    registry_ = registry;
    policy_.default_time_limit = absl::Hours(24);
  }

  int Pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  std::mt19937 random_{GetParam()};
  std::shared_ptr<const core::Registry> registry_;
  core::Policy policy_;
};

TEST_P(EstimateReplay, EveryJobStartsWhenItWasEstimated) {
  const absl::Time begins = absl::FromCivil(absl::CivilDay(2026, 1, 27), absl::UTCTimeZone());
  plan::Planner planner(policy_, absl::UTCTimeZone(), registry_);
  planner.SetStorage(core::kEverybody, {.bytes = 0, .scanned_at = begins});
  Workload workload;
  std::map<int64_t, core::RunWithSteps> runs;
  std::vector<core::StepRef> waiting;
  static constexpr int kCards[] = {1, 2, 4, 4, 8, 12};
  for (int i = 0; i < kJobs; ++i) {
    Submission& job = workload.jobs.emplace_back();
    job.user = "u" + std::to_string(Pick(1, 5));
    job.profile = (Pick(0, 1) == 1 ? "x:" : "y:") + std::to_string(kCards[Pick(0, 5)]);
    job.priority = Pick(0, 3) == 0 ? 60 : 50;
    job.runs = absl::Minutes(Pick(5, 600));
    job.time_limit = job.runs;
    core::RunWithSteps& run = runs[i + 1];
    run.run.n = i + 1;
    run.run.owner = job.user;
    run.run.priority = job.priority;
    run.run.created_at = begins;
    core::Step& step = run.steps.emplace_back();
    step.ref = {i + 1, 0};
    step.spec.profiles = {job.profile};
    step.spec.time_limit = job.time_limit;
    step.entered_at = begins;
    planner.Follow(run, step, begins);
    waiting.push_back(step.ref);
  }
  const auto estimates = plan::EstimateStarts(plan::GatherForecast(
      planner, [&runs](int64_t n) { return &runs.at(n); }, waiting, {}, begins));
  const PolicyCase rules{.name = "rules", .policy = policy_, .registry = registry_, .user_quotas = {}};
  const Outcome outcome = Replay(workload, rules, begins, absl::UTCTimeZone());
  int started = 0;
  for (const core::StepRef ref : waiting) {
    std::optional<absl::Time> actual = outcome.jobs[static_cast<size_t>(ref.run) - 1].started;
    if (actual && *actual > begins + plan::kEstimateHorizon) actual.reset();
    started += actual ? 1 : 0;
    EXPECT_EQ(estimates.at(ref).starts_at, actual)
        << "run " << ref.run << ": " << plan::WhyNoEstimate(estimates.at(ref), true);
  }
  EXPECT_GT(started, kJobs / 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EstimateReplay, testing::Range(1U, 61U));

}  // namespace
}  // namespace tp::simulate
