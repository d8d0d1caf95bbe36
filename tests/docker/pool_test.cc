// Four jobs of two cards on an engine with four, under the loop itself, in virtual time: hundreds of interleavings of
// turns, calls, looks, losses, outages, ends, and deaths of tpd.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/docker/docker_backend.h"
#include "fake_engine.h"
#include "loop/loop.h"
#include "store/memory_store.h"
#include "tests/launch/temp_dir.h"

namespace tp::docker::test {
namespace {

constexpr uint64_t kPoolSeeds = 500;
constexpr int kPoolActions = 120;
constexpr int kJobs = 4;
constexpr int kCards = 4;
constexpr int kCalmRounds = 4000;

std::shared_ptr<const core::Registry> OneBox() {
  auto registry = std::make_shared<core::Registry>();
  core::Series box;
  box.name = "box";
  box.gpus_per_node = kCards;
  box.executor = "gpu/box";
  box.nodes.push_back({"box-1", "rank0"});
  registry->series["box"] = box;
  core::Profile profile;
  profile.name = "box";
  profile.series = "box";
  profile.default_total = 2;
  registry->profiles["box"] = profile;
  core::Executor executor;
  executor.provider = "gpu";
  executor.profile = "box";
  executor.name = "gpu/box";
  executor.backend = "docker";
  executor.config_json = R"({"image":"image"})";
  registry->executors[executor.name] = executor;
  return registry;
}

// What the loop wants done, until the story has it done: of one attempt in order, of several in any.
class Wishes final : public loop::EffectSink {
 public:
  struct Call {
    int64_t id = 0;
    AttemptTarget target;
    std::function<loop::EffectResult(DockerBackend&)> carry_out;
  };

  void Launch(int64_t id, const std::string&, const LaunchSpec& spec, const AttemptTarget& target) override {
    Push(id, target, [spec](DockerBackend& backend) { return backend.Launch(spec, Soon()); });
  }
  void Fence(int64_t id, const std::string&, const AttemptTarget& target) override {
    Push(id, target, [target](DockerBackend& backend) { return backend.Fence(target, Soon()); });
  }
  void Signal(int64_t id, const std::string&, const AttemptTarget& target, StopLevel level) override {
    Push(id, target, [target, level](DockerBackend& backend) { return backend.Stop(target, level, Soon()); });
  }
  void Remove(int64_t id, const std::string&, const AttemptTarget& target) override {
    Push(id, target, [target](DockerBackend& backend) { return backend.Remove(target, Soon()); });
  }
  void Track(const std::string&, const AttemptTarget& target) override { tracked_[target.key] = target; }
  void Untrack(const std::string& key) override { tracked_.erase(key); }
  void Look(const std::string&, const AttemptTarget& target) override { tracked_[target.key] = target; }

  const std::map<std::string, AttemptTarget>& tracked() const { return tracked_; }
  bool HasCalls() const { return !calls_.empty(); }

  // The first call of one of the attempts.
  Call Take(Random& random) {
    std::set<std::string> keys;
    for (const Call& call : calls_) keys.insert(call.target.key);
    auto key = keys.begin();
    std::advance(key, random.Between(0, static_cast<int64_t>(keys.size()) - 1));
    const auto found =
        std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) { return call.target.key == *key; });
    Call call = std::move(*found);
    calls_.erase(found);
    return call;
  }

 private:
  static absl::Time Soon() { return absl::Now() + absl::Seconds(5); }
  template <typename Work>
  void Push(int64_t id, const AttemptTarget& target, Work work) {
    calls_.push_back({id, target, [work](DockerBackend& backend) { return loop::EffectResult(work(backend)); }});
  }

  std::deque<Call> calls_;
  std::map<std::string, AttemptTarget> tracked_;
};

class PoolStory {
 public:
  explicit PoolStory(uint64_t seed) : random_(seed), engine_(seed + 1'000'000) {
    std::filesystem::create_directories(dir_.At("storage"));
    Start();
    for (int job = 0; job < kJobs; ++job) Submit();
  }

  void Play() {
    engine_.SetLosses(random_.Between(0, 2) == 0 ? 0 : 60);
    for (int i = 0; i < kPoolActions && !::testing::Test::HasFailure(); ++i) Act();
    Calm();
  }

  int restarts() const { return restarts_; }
  size_t most_held() const { return most_held_; }

 private:
  void Start() {
    wishes_ = std::make_unique<Wishes>();
    DockerOptions options;
    options.deployment = "test";
    options.storage_root = dir_.At("storage");
    options.rank_binary = "/bin/true";
    options.since_boot = [this] { return now_ - absl::UnixEpoch(); };
    auto created = DockerBackend::CreateOver(std::move(options), std::make_unique<FakeTransport>(engine_));
    ASSERT_TRUE(created.ok()) << created.status();
    backend_ = *std::move(created);
    loop::Settings settings;
    settings.deployment = {"test", 1};
    settings.layout.storage_root = dir_.At("storage");
    settings.layout.log_max_bytes = 1 << 20;
    settings.layout.heartbeat_ms = 1000;
    loop_ = std::make_unique<loop::Loop>(settings, store_.Load().value(), OneBox(), *wishes_,
                                         [this] { return fmt::format("nonce-{}", ++nonces_); });
    loop_->Recover();
  }

  void Submit() {
    loop::SubmitRun submit;
    submit.name = "train";
    submit.project = "vision";
    core::StepSpec step;
    step.name = "train";
    step.argv = {"train"};
    step.profiles = {"box:2"};
    submit.steps = {step};
    loop_->Post(loop::Command{{"ada", store::Role::kUser}, fmt::format("r{}", ++requests_), "Submit", "sha", submit},
                [](const absl::StatusOr<loop::Answer>& answer) { EXPECT_TRUE(answer.ok()) << answer.status(); });
    Turn();
  }

  // A tpd that dies between the commit and what leaves by it has done nothing yet.
  void Turn() {
    for (int i = 0; i < 20; ++i) {
      const auto txn = loop_->Turn(now_);
      if (!txn) return;
      ASSERT_TRUE(store_.Commit(*txn).ok());
      loop_->Committed();
    }
  }

  // What was under way dies with it, carried out or not.
  void Restart() {
    ++restarts_;
    if (wishes_->HasCalls() && random_.Between(0, 1) == 0) wishes_->Take(random_).carry_out(*backend_);
    loop_.reset();
    backend_.reset();
    Start();
  }

  void Act() {
    const int64_t what = random_.Between(0, 99);
    if (what < 30) {
      CarryOne();
    } else if (what < 65) {
      Look();
    } else if (what < 77) {
      now_ += absl::Milliseconds(random_.Between(1, random_.Between(0, 4) == 0 ? 30'000 : 800));
    } else if (what < 86) {
      engine_.EndOne(random_.Between(0, 2) == 0 ? 3 : 0);
    } else if (what < 89) {
      engine_.KillOne();
    } else if (what < 94) {
      engine_.SetDown(!engine_.down());
    } else {
      Restart();
    }
    Turn();
    Check();
  }

  void CarryOne() {
    if (!wishes_->HasCalls()) return;
    Wishes::Call call = wishes_->Take(random_);
    loop_->Post(loop::EffectAnswered{call.id, call.carry_out(*backend_)});
  }

  void Look() {
    std::vector<AttemptTarget> targets;
    for (const auto& [key, target] : wishes_->tracked()) targets.push_back(target);
    if (targets.empty()) return;
    std::vector<Observation> seen = backend_->Observe(targets, absl::Now() + absl::Seconds(5));
    ASSERT_EQ(seen.size(), targets.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      loop_->Post(loop::AttemptObserved{targets[i].key, std::move(seen[i])});
    }
  }

  void Check() {
    const std::vector<std::string> held = engine_.DevicesInUse();
    most_held_ = std::max(most_held_, held.size());
    EXPECT_LE(held.size(), kCards) << fmt::format("{}", fmt::join(held, " "));
    EXPECT_EQ(std::set<std::string>(held.begin(), held.end()).size(), held.size()) << "a card is held twice";
    EXPECT_LE(engine_.MostStarts(), 1) << "a container was started again";
    for (const auto& [name, box] : engine_.boxes()) EXPECT_LE(engine_.JobsRun(box.plays.key, 0), 1) << name;
  }

  bool AllOver() {
    for (int64_t run = 1; run <= kJobs; ++run) {
      if (!core::IsTerminal(store_.GetRun(run)->steps.at(0).state)) return false;
    }
    return true;
  }

  // Everything answers again: every job comes to its true end.
  void Calm() {
    engine_.SetDown(false);
    engine_.SetLosses(0);
    for (int round = 0; round < kCalmRounds && !AllOver() && !::testing::Test::HasFailure(); ++round) {
      while (wishes_->HasCalls()) CarryOne();
      Look();
      Turn();
      Check();
      if (random_.Between(0, 3) == 0) engine_.EndOne(0);
      now_ += absl::Milliseconds(500);
    }
    EXPECT_TRUE(AllOver()) << "a job does not come to its end";
    EXPECT_EQ(engine_.DevicesInUse().size(), 0u);
    for (int64_t run = 1; run <= kJobs && !::testing::Test::HasFailure(); ++run) {
      const core::Step step = store_.GetRun(run)->steps.at(0);
      if (step.state != core::JobState::kSucceeded) continue;
      bool well = false;
      for (int attempt = 1; attempt <= 100; ++attempt) {
        well |= engine_.EndedWell(fmt::format("tp-test-e1-{}-s0-a{}", run, attempt));
      }
      EXPECT_TRUE(well) << "run " << run << " is shown as done and is not";
    }
  }

  Random random_;
  tp::testing::TempDir dir_{tp::testing::InMemory()};
  FakeEngine engine_;
  store::MemoryStore store_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<Wishes> wishes_;
  std::unique_ptr<DockerBackend> backend_;
  std::unique_ptr<loop::Loop> loop_;
  int nonces_ = 0;
  int requests_ = 0;
  int restarts_ = 0;
  size_t most_held_ = 0;
};

TEST(PoolStories, NeverHoldMoreThanThePool) {
  int restarts = 0;
  int full = 0;
  for (uint64_t seed = 1; seed <= kPoolSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    PoolStory story(seed);
    story.Play();
    restarts += story.restarts();
    full += story.most_held() == kCards ? 1 : 0;
  }
  EXPECT_GT(full, static_cast<int>(kPoolSeeds) / 2) << "the pool was seldom full, so little was shown";
  std::printf("SCENARIOS docker %d\n%d restarts, full in %d\n", static_cast<int>(kPoolSeeds), restarts, full);
}

}  // namespace
}  // namespace tp::docker::test
