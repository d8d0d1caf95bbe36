// Single cases of the docker backend over an engine in memory.
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/docker/docker_backend.h"
#include "fake_engine.h"
#include "launch/engine_call.h"
#include "tests/launch/temp_dir.h"

namespace tp::docker::test {
namespace {

using ::testing::HasSubstr;

class DockerCase : public ::testing::Test {
 protected:
  DockerCase() {
    std::filesystem::create_directories(dir_.At("storage"));
    DockerOptions options;
    options.deployment = "lab";
    options.storage_root = dir_.At("storage");
    options.rank_binary = "/bin/true";
    options.since_boot = [this] { return clock_.load(); };
    auto created = DockerBackend::CreateOver(std::move(options), std::make_unique<FakeTransport>(engine_));
    EXPECT_TRUE(created.ok()) << created.status();
    backend_ = *std::move(created);
  }

  LaunchSpec Spec(const std::string& image = "image", const std::string& pull_deadline = "30s") const {
    LaunchSpec spec;
    spec.key = "tp-lab-e1-1-s0-a1";
    spec.nonce = "nonce-1";
    spec.image = image;
    spec.executor_config = fmt::format(R"({{"image_pull_deadline": "{}"}})", pull_deadline);
    const std::string run = dir_.At("storage/ada/train-1");
    spec.paths = {run + "/attempts/t-1", run + "/attempts/t-1/work", run + "/output", run + "/results/t"};
    spec.argv = {"train"};
    spec.log_max_bytes = 1 << 20;
    spec.heartbeat_ms = 1000;
    spec.overrides_json = {"{}"};
    RankLaunch rank;
    rank.placement = {"box", "rank0", {}};
    spec.ranks.push_back(rank);
    return spec;
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(20); }
  Observation See(const LaunchSpec& spec) { return backend_->Observe({launch::TargetOf(spec)}, Soon()).front(); }
  // Until the pull has ended.
  Observation AfterPull(const LaunchSpec& spec) {
    for (const absl::Time limit = Soon(); absl::Now() < limit; absl::SleepFor(absl::Milliseconds(5))) {
      clock_ = clock_.load() + absl::Milliseconds(5);
      Observation seen = See(spec);
      const auto* present = std::get_if<Present>(&seen);
      if (present == nullptr || present->phase != EnginePhase::kWaiting) return seen;
    }
    return Unknown{"the pull does not end"};
  }

  tp::testing::TempDir dir_;
  FakeEngine engine_{1};
  std::atomic<absl::Duration> clock_ = absl::Hours(1);
  std::unique_ptr<DockerBackend> backend_;
};

TEST_F(DockerCase, AContainerOfACommittedImageIsNotTheRank) {
  const LaunchSpec spec = Spec();
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  engine_.Copy(ContainerName(spec.key, 0, 0), "aaa-debug");
  const Observation seen = See(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_FALSE(std::get<Present>(seen).freed);
  EXPECT_EQ(std::get<Present>(seen).ranks[0].tree, Tree::kAlive);
  engine_.EndOne(0);
  EXPECT_TRUE(std::get<Present>(See(spec)).freed);
  EXPECT_TRUE(backend_->Remove(launch::TargetOf(spec), Soon()).ok());
  EXPECT_EQ(engine_.boxes().size(), 1u) << "somebody else's";
  EXPECT_TRUE(engine_.boxes().contains("aaa-debug"));
}

TEST_F(DockerCase, AnEngineThatIsAwayDuringAPullSaysNothingOfTheImage) {
  engine_.OnPull([](const auto&) { return absl::UnavailableError("the docker engine does not answer"); });
  const LaunchSpec spec = Spec("other", "1s");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  EXPECT_TRUE(std::holds_alternative<Absent>(AfterPull(spec)));
}

TEST_F(DockerCase, WhatARegistryCannotDoForNowIsTriedUntilTheDeadline) {
  int pulls = 0;
  engine_.OnPull([&](const auto& line) {
    ++pulls;
    line(R"({"error": "net/http: TLS handshake timeout"})");
    return absl::OkStatus();
  });
  const LaunchSpec spec = Spec("other", "7s");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  const Observation seen = AfterPull(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_EQ(std::get<Present>(seen).engine_end, EngineEnd::kImage);
  EXPECT_THAT(std::get<Present>(seen).reason, HasSubstr("TLS handshake timeout"));
  EXPECT_EQ(pulls, 2);
}

TEST_F(DockerCase, AnImageThatDoesNotExistIsToldAtOnce) {
  engine_.OnPull([](const auto& line) {
    line(R"({"error": "manifest for other:latest not found: manifest unknown"})");
    return absl::OkStatus();
  });
  const LaunchSpec spec = Spec("other", "10m");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  const Observation seen = AfterPull(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_EQ(std::get<Present>(seen).engine_end, EngineEnd::kImage);
}

TEST_F(DockerCase, APullThatIsCalledOffEnds) {
  std::atomic<bool> ended = false;
  engine_.OnPull([&](const auto& line) {
    while (line(R"({"status": "Downloading"})")) absl::SleepFor(absl::Milliseconds(1));
    ended = true;
    return absl::OkStatus();
  });
  const LaunchSpec spec = Spec("other", "10m");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  EXPECT_TRUE(backend_->Stop(launch::TargetOf(spec), StopLevel::kKill, Soon()).ok());
  for (const absl::Time limit = Soon(); !ended && absl::Now() < limit;) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(ended);
}

// Its patience with a rank that does not begin is that after the launch, however long the pull before it took.
TEST_F(DockerCase, APullDoesNotUseUpThePatienceWithWhatItStarts) {
  std::atomic<bool> pulled = false;
  engine_.OnPull([&](const auto&) {
    while (!pulled) absl::SleepFor(absl::Milliseconds(1));
    engine_.SetLosses(0);
    return absl::UnavailableError("the docker engine does not answer");
  });
  const LaunchSpec spec = Spec("other", "1s");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend_->Launch(spec, Soon())));
  See(spec);
  clock_ = clock_.load() + absl::Minutes(5);
  See(spec);
  pulled = true;
  EXPECT_TRUE(std::holds_alternative<Absent>(AfterPull(spec)));
  // The claim of an order that was thought lost.
  tp::testing::WriteText(
      spec.paths.attempt_dir + "/attempt.claim",
      fmt::format("tp-record 1\nkey={}\nowner=launch\nnonce={}\nhost=box\nboot_id=b\nrandom=r\nend\n", spec.key,
                  spec.nonce));
  const Observation seen = See(spec);
  ASSERT_TRUE(std::holds_alternative<Present>(seen));
  EXPECT_FALSE(std::get<Present>(seen).freed);
  EXPECT_EQ(tp::testing::ReadText(spec.paths.attempt_dir + "/fence"), "open\n");
}

}  // namespace
}  // namespace tp::docker::test
