// Hundreds of interleavings of orders, looks, losses and deaths over an engine in memory.
#include <filesystem>
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
  explicit Story(uint64_t seed) : random_(seed), engine_(seed + 1'000'000) {
    std::filesystem::create_directories(dir_.At("storage"));
    Restart();
  }

  void Play() {
    engine_.SetLosses(random_.Between(0, 2) == 0 ? 0 : 60);
    for (int i = 0; i < kActions && !::testing::Test::HasFailure(); ++i) Act();
    Calm();
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
      backend_->Fence(Target(attempt), Soon());
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
    EXPECT_LE(engine_.MostStarts(), 1) << "a container was started again";
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
    const int running = engine_.Running(KeyOf(attempt));
    if (std::holds_alternative<Absent>(seen)) {
      EXPECT_EQ(running, 0) << KeyOf(attempt) << " runs and is told absent";
    }
    const Present* const present = std::get_if<Present>(&seen);
    if (present == nullptr) return;
    EXPECT_FALSE(engine_.down()) << "nothing is known while the engine is away";
    if (present->freed) {
      EXPECT_EQ(running, 0) << KeyOf(attempt) << " runs and is told freed";
    }
    for (const RankObservation& rank : present->ranks) {
      EXPECT_LE(engine_.JobsRun(KeyOf(attempt), rank.rank), 1) << "a job ran twice";
      if (present->claim == Claim::kFenced) continue;
      if (rank.ended && present->freed) {
        EXPECT_TRUE(rank.started);
      }
      if (present->engine_end == EngineEnd::kExitedZero && rank.ended) {
        EXPECT_TRUE(rank.ended->clean());
      }
    }
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
      EXPECT_TRUE(over) << KeyOf(attempt) << " does not come to an end";
      EXPECT_EQ(engine_.Running(KeyOf(attempt)), 0);
      EXPECT_EQ(backend_->Remove(Target(attempt), Soon()), absl::OkStatus());
    }
    for (const auto& [name, box] : engine_.boxes())
      EXPECT_FALSE(launched_.contains(1) && box.state == "running") << name;
  }

  Random random_;
  tp::testing::TempDir dir_{tp::testing::InMemory()};
  FakeEngine engine_;
  std::unique_ptr<DockerBackend> backend_;
  std::set<int> launched_;
  int observations_ = 0;
};

TEST(DockerStories, HoldWhateverHappens) {
  int observations = 0;
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Story story(seed);
    story.Play();
    observations += story.observations();
  }
  std::printf("SCENARIOS docker %d\n", static_cast<int>(kSeeds));
  std::printf("%d observations\n", observations);
}

}  // namespace
}  // namespace tp::docker::test
