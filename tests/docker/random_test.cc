// Hundreds of interleavings of orders, looks, losses and deaths over an engine in memory.
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/docker/docker_backend.h"
#include "fake_engine.h"
#include "tests/launch/temp_dir.h"

namespace tp::docker::test {
namespace {

constexpr uint64_t kSeeds = 500;
constexpr int kActions = 60;
constexpr int kAttempts = 4;
constexpr int kRanks = 2;

class Story {
 public:
  explicit Story(uint64_t seed, Breach breach = Breach::kNone) : random_(seed), engine_(seed + 1'000'000, breach) {
    std::filesystem::create_directories(dir_.At("storage"));
    Restart();
  }

  // The first thing that was said or done and is not true or allowed.
  std::optional<std::string> Play() {
    engine_.SetLosses(random_.Between(0, 2) == 0 ? 0 : 60);
    for (int i = 0; i < kActions && !wrong_; ++i) Act();
    if (!wrong_) Calm();
    return wrong_;
  }

  int observations() const { return observations_; }

 private:
  static absl::Time Soon() { return absl::Now() + absl::Seconds(5); }
  std::string KeyOf(int attempt) const { return fmt::format("tp-lab-e1-{}-s0-a1", attempt); }

  LaunchSpec Spec(int attempt) const {
    LaunchSpec spec;
    spec.key = KeyOf(attempt);
    spec.nonce = fmt::format("nonce-{}", attempt);
    spec.image = "image";
    const std::string run = fmt::format("{}/ada/train-{}", dir_.At("storage"), attempt);
    spec.paths = {run + "/attempts/t-1", run + "/attempts/t-1/work", run + "/output", run + "/results/t"};
    spec.argv = {"train"};
    spec.log_max_bytes = 1 << 20;
    spec.heartbeat_ms = 1000;
    spec.overrides_json = {"{}"};
    for (int rank = 0; rank < kRanks; ++rank) {
      RankLaunch launch;
      launch.rank = rank;
      launch.placement = {fmt::format("box-{}", rank), fmt::format("rank{}", rank), {}};
      spec.ranks.push_back(std::move(launch));
    }
    return spec;
  }

  AttemptTarget Target(int attempt) const {
    const LaunchSpec spec = Spec(attempt);
    return {spec.key, spec.nonce, spec.paths.attempt_dir, {kRanks}};
  }

  void Restart() {
    backend_.reset();
    DockerOptions options;
    options.deployment = "lab";
    options.storage_root = dir_.At("storage");
    options.rank_binary = "/bin/true";
    options.since_boot = [this] { return clock_; };
    auto created = DockerBackend::CreateOver(std::move(options), std::make_unique<FakeTransport>(engine_));
    ASSERT_TRUE(created.ok()) << created.status();
    backend_ = *std::move(created);
  }

  int Any() { return static_cast<int>(random_.Between(1, kAttempts)); }

  void Act() {
    const int64_t what = random_.Between(0, 99);
    const int attempt = Any();
    if (what < 20) {
      if (launched_.insert(attempt).second) backend_->Launch(Spec(attempt), Soon());
    } else if (what < 60) {
      Look();
    } else if (what < 68) {
      if (launched_.contains(attempt)) backend_->Stop(Target(attempt), StopLevel::kTerm, Soon()).IgnoreError();
    } else if (what < 73) {
      if (launched_.contains(attempt)) backend_->Stop(Target(attempt), StopLevel::kKill, Soon()).IgnoreError();
    } else if (what < 76) {
      if (std::holds_alternative<FenceWon>(backend_->Fence(Target(attempt), Soon()))) fenced_.insert(attempt);
      launched_.insert(attempt);
    } else if (what < 86) {
      engine_.EndOne(static_cast<int>(random_.Between(0, 3)));
    } else if (what < 90) {
      engine_.KillOne();
    } else if (what < 95) {
      engine_.SetDown(!engine_.down());
    } else {
      Restart();
    }
    const absl::Duration passed = random_.Chance(50) ? absl::Seconds(70) : absl::Milliseconds(200);
    engine_.Pass(passed);
    clock_ += passed;
    CheckTruth();
  }

  void CheckTruth() {
    if (engine_.MostStarts() > 1) Wrong(0, "a container was started again");
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      const std::string key = KeyOf(attempt);
      int begun = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        begun += engine_.JobsRun(key, rank);
        if (engine_.JobsRun(key, rank) > 1) Wrong(attempt, "a job ran twice");
      }
      if (fenced_.contains(attempt) && begun > 0) Wrong(attempt, "was fenced and ran");
      const auto over = over_.find(attempt);
      if (over != over_.end() && begun > over->second) Wrong(attempt, "was told over and began");
    }
  }

  void Look() {
    std::vector<AttemptTarget> targets;
    for (int attempt = 1; attempt <= kAttempts; ++attempt) targets.push_back(Target(attempt));
    const std::vector<Observation> seen = backend_->Observe(targets, Soon());
    ASSERT_EQ(seen.size(), targets.size());
    for (int attempt = 1; attempt <= kAttempts; ++attempt) Judge(attempt, seen[static_cast<size_t>(attempt) - 1]);
  }

  void Judge(int attempt, const Observation& seen) {
    ++observations_;
    const bool running = engine_.Running(KeyOf(attempt)) > 0;
    if (std::holds_alternative<Absent>(seen) && running) Wrong(attempt, "runs and is told absent");
    const Present* const present = std::get_if<Present>(&seen);
    if (present == nullptr) return;
    if (engine_.down()) Wrong(attempt, "is told while the engine is away");
    if (present->freed && running) Wrong(attempt, "runs and is told freed");
    if (present->freed) over_.try_emplace(attempt, Begun(attempt));
    if (present->claim == Claim::kFenced) return;
    for (const RankObservation& rank : present->ranks) {
      if (rank.ended && present->freed && !rank.started) Wrong(attempt, "ended without a start");
      if (present->engine_end == EngineEnd::kExitedZero && rank.ended && !rank.ended->clean()) {
        Wrong(attempt, "is told to have ended well and did not");
      }
      if (rank.ended && rank.ended->clean() && !rank.ended->signalled() && !engine_.EndedWell(KeyOf(attempt))) {
        Wrong(attempt, "is told to have ended well and did not");
      }
    }
  }

  int Begun(int attempt) const {
    int begun = 0;
    for (int rank = 0; rank < kRanks; ++rank) begun += engine_.JobsRun(KeyOf(attempt), rank);
    return begun;
  }

  // Everything answers again: what was launched comes to its end.
  void Calm() {
    engine_.SetDown(false);
    engine_.SetLosses(0);
    for (const int attempt : launched_) {
      bool over = false;
      for (int tries = 0; tries < 50 && !over; ++tries) {
        backend_->Stop(Target(attempt), StopLevel::kKill, Soon()).IgnoreError();
        const Observation seen = backend_->Observe({Target(attempt)}, Soon()).at(0);
        const Present* const present = std::get_if<Present>(&seen);
        over = std::holds_alternative<Absent>(seen) || (present != nullptr && present->freed);
      }
      if (!over) Wrong(attempt, "does not come to an end");
      if (engine_.Running(KeyOf(attempt)) > 0) Wrong(attempt, "was killed and runs");
      const absl::Status removed = backend_->Remove(Target(attempt), Soon());
      if (!removed.ok()) Wrong(attempt, fmt::format("cannot be removed: {}", std::string(removed.message())));
    }
    for (const auto& [name, box] : engine_.boxes()) {
      if (launched_.contains(1) && box.state == "running") Wrong(1, name + " is left");
    }
  }

  void Wrong(int attempt, const std::string& what) {
    if (!wrong_) wrong_ = fmt::format("{} {}", KeyOf(attempt), what);
  }

  Random random_;
  tp::testing::TempDir dir_{tp::testing::InMemory()};
  FakeEngine engine_;
  absl::Duration clock_ = absl::Hours(1);
  std::unique_ptr<DockerBackend> backend_;
  std::set<int> launched_;
  std::set<int> fenced_;
  std::map<int, int> over_;  // told freed, and how many ranks had begun by then
  std::optional<std::string> wrong_;
  int observations_ = 0;
};

TEST(DockerStories, HoldWhateverHappens) {
  int observations = 0;
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    Story story(seed);
    const std::optional<std::string> wrong = story.Play();
    EXPECT_FALSE(wrong) << "seed " << seed << ": " << *wrong;
    observations += story.observations();
  }
  std::printf("SCENARIOS docker %d\n", static_cast<int>(kSeeds));
  std::printf("%d observations\n", observations);
}

class PlantedBreach : public ::testing::TestWithParam<Breach> {};

TEST_P(PlantedBreach, IsNoticed) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (Story(seed, GetParam()).Play()) return;
  }
  FAIL() << "the oracle did not notice";
}

INSTANTIATE_TEST_SUITE_P(Engine, PlantedBreach,
                         ::testing::Values(Breach::kListsTooFew, Breach::kTellsLivingAsExited, Breach::kStartsAgain,
                                           Breach::kRanksIgnoreTheFence, Breach::kRanksIgnoreTheClaim,
                                           Breach::kAnswersWithoutDoing, Breach::kRecordsAllAsWell));

}  // namespace
}  // namespace tp::docker::test
