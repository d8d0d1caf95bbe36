// Random launches, observations, orders, cuts, restarts and lost answers over simulated machines: what the backend
// says is held against what is true there.
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/node/node_backend.h"
#include "launch/attempt_dir.h"
#include "tests/launch/temp_dir.h"
#include "tests/node/sim_cluster.h"

namespace tp::node {
namespace {

constexpr int kSimHosts = 4;

class Episode {
 public:
  // `copied`: the machines share no storage.
  Episode(uint64_t seed, PlantedBug bug, bool copied = false)
      : bug_(bug),
        copied_(copied),
        random_(seed),
        cluster_(kSimHosts, seed * 31 + 1, bug, copied ? dir_.At("machines") : "") {
    std::filesystem::create_directories(dir_.At("storage"));
    tp::testing::WriteText(dir_.At("tp-rank"), "any bytes");
    Restart();
  }

  // The first thing that was said and is not true.
  std::optional<std::string> Play(int steps) {
    const int held = bug_ == PlantedBug::kLateOrdersStart ? 400 : 120;
    cluster_.SetFaults(
        {.lost_order = 20, .held_order = held, .lost_answer = 40, .half_answer = 20, .broken_copy = copied_ ? 30 : 0});
    for (int step = 0; step < steps && !wrong_; ++step) {
      Act();
      cluster_.Step();
      for (const Attempt& attempt : attempts_) CheckTruth(attempt);
    }
    if (!wrong_) ComeToAnEnd();
    return wrong_;
  }

  int observations() const { return observations_; }

 private:
  struct Attempt {
    LaunchSpec spec;
    bool ended = false;          // said to hold nothing any more
    std::map<int, int> gone;     // ranks said to be gone, and how often they had begun by then
    std::map<int, int> code_of;  // of end records seen
  };

  void Restart() {
    if (backend_) ++restarts_;
    backend_.reset();
    NodeOptions options{.deployment = "sim",
                        .storage_root = dir_.At("storage"),
                        .rank_binary = dir_.At("tp-rank"),
                        .data_directory = dir_.path(),
                        .ssh = {},
                        .reader = {.settle = absl::Seconds(1), .heartbeat_every = absl::Seconds(5)},
                        .copied = copied_};
    auto created = NodeBackend::CreateOver(std::move(options), std::make_unique<SimShell>(cluster_),
                                           std::make_unique<SimCopier>(cluster_));
    ASSERT_TRUE(created.ok()) << created.status();
    backend_ = *std::move(created);
    std::vector<RankHost> hosts;
    for (int host = 0; host < kSimHosts; ++host) hosts.push_back(cluster_.HostOf(host));
    backend_->SetNodes(hosts);
  }

  static absl::Time Soon() { return absl::Now() + absl::Seconds(20); }
  int AnyHost() { return static_cast<int>(random_.Between(0, kSimHosts - 1)); }

  void Act() {
    const int64_t dice = random_.Between(0, 99);
    if (dice < 12 || attempts_.empty()) return Begin();
    Attempt& attempt = attempts_[static_cast<size_t>(random_.Between(0, static_cast<int64_t>(attempts_.size()) - 1))];
    if (dice < 62) return Observe(attempt);
    if (dice < 65) return Order(attempt, StopLevel::kTerm);
    if (dice < 68) return Order(attempt, StopLevel::kKill);
    if (dice < 70) return Order(attempt, StopLevel::kWarn);
    if (dice < 72) return Fence(attempt);
    if (dice < 75) return cluster_.Cut(AnyHost());
    if (dice < 92) return MendAll();
    if (dice < 95) return cluster_.Reboot(AnyHost());
    if (dice < 98) return cluster_.KillARunner(AnyHost());
    Restart();
  }

  void MendAll() {
    for (int host = 0; host < kSimHosts; ++host) cluster_.Mend(host);
    backend_->ProbeNodes(Soon());
  }

  void Begin() {
    Attempt attempt;
    LaunchSpec& spec = attempt.spec;
    const size_t run = attempts_.size() + 1;
    spec.key = fmt::format("tp-sim-e1-{}-s0-a1", run);
    spec.nonce = fmt::format("nonce-{}", run);
    const std::string dir = fmt::format("{}/ada/train-{}", dir_.At("storage"), run);
    spec.paths = {dir + "/attempts/train-1", dir + "/attempts/train-1/work", dir + "/output", dir + "/results/train"};
    spec.argv = {"program"};
    spec.log_max_bytes = 1 << 20;
    spec.heartbeat_ms = 1000;
    const int ranks = static_cast<int>(random_.Between(1, 3));
    const int first = AnyHost();
    for (int rank = 0; rank < ranks; ++rank) {
      RankLaunch launch;
      launch.rank = rank;
      const RankHost host = cluster_.HostOf((first + rank) % kSimHosts);
      launch.placement = {host.node, host.address, {}};
      spec.ranks.push_back(launch);
    }
    attempts_.push_back(attempt);
    const LaunchResult result = backend_->Launch(spec, Soon());
    if (!std::holds_alternative<LaunchRefused>(result)) return;
    for (int rank = 0; rank < ranks; ++rank) {
      if (cluster_.Begun(spec.key, rank) > 0) Wrong(spec, "was refused and runs");
    }
  }

  static AttemptTarget TargetOf(const LaunchSpec& spec) {
    AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {static_cast<int>(spec.ranks.size())}};
    for (const RankLaunch& rank : spec.ranks) target.hosts.push_back({rank.placement.node, rank.placement.address});
    return target;
  }

  void Observe(Attempt& attempt) {
    ++observations_;
    const LaunchSpec& spec = attempt.spec;
    const Observation seen = backend_->Observe({TargetOf(spec)}, Soon()).front();
    if (const auto* absent = std::get_if<Absent>(&seen)) {
      if (cluster_.OnItsWay(spec.key)) Wrong(spec, "is absent while its launch is under way");
      CheckRanks(attempt, absent->ranks);
    }
    if (const auto* present = std::get_if<Present>(&seen)) {
      CheckRanks(attempt, present->ranks);
      attempt.ended = attempt.ended || present->freed;
      if (present->freed) CheckOutput(attempt);
    }
    CheckTruth(attempt);
  }

  // Once it is over, what its ranks wrote is here.
  void CheckOutput(const Attempt& attempt) {
    for (size_t rank = 0; copied_ && rank < attempt.spec.ranks.size(); ++rank) {
      if (cluster_.Begun(attempt.spec.key, static_cast<int>(rank)) == 0) continue;
      const std::string path = fmt::format("{}/rank-{}", attempt.spec.paths.output_dir, rank);
      if (tp::testing::ReadText(path) == attempt.spec.key) continue;
      std::string names;
      for (const auto& entry : std::filesystem::directory_iterator(attempt.spec.paths.attempt_dir)) {
        names += " " + entry.path().filename().string();
      }
      Wrong(attempt.spec, fmt::format("is over and the output of rank {} is not here, but{}", rank, names));
    }
  }

  void CheckRanks(Attempt& attempt, const std::vector<RankObservation>& ranks) {
    for (const RankObservation& rank : ranks) {
      if (rank.tree == Tree::kGone) NoteGone(attempt, rank.rank);
      // A tpd that has just started may not know it yet; that it lives is never said again.
      // Where files are copied, the claim of an order that came after the fence was closed arrives with a look, and the
      // next one asks for its process; that it never begins is checked by CheckTruth.
      const bool may_be_unknown = (rank.tree == Tree::kUnknown || copied_) && restarts_ > 0;
      if (rank.tree != Tree::kGone && attempt.gone.contains(rank.rank) && !may_be_unknown) {
        Wrong(attempt.spec, fmt::format("came back as {}", rank.tree == Tree::kAlive ? "alive" : "unknown"));
      }
      if (!rank.ended) continue;
      const auto [known, first] = attempt.code_of.try_emplace(rank.rank, rank.ended->code);
      if (!first && known->second != rank.ended->code) Wrong(attempt.spec, "changed its end");
    }
  }

  void NoteGone(Attempt& attempt, int rank) { attempt.gone.try_emplace(rank, cluster_.Begun(attempt.spec.key, rank)); }

  void CheckTruth(const Attempt& attempt) {
    for (size_t i = 0; i < attempt.spec.ranks.size(); ++i) {
      const int rank = static_cast<int>(i);
      const int begun = cluster_.Begun(attempt.spec.key, rank);
      if (begun > 1) Wrong(attempt.spec, "was begun twice");
      const auto gone = attempt.gone.find(rank);
      if (gone != attempt.gone.end() && begun > gone->second) Wrong(attempt.spec, "was said to be gone and began");
      if (attempt.gone.contains(rank) && cluster_.Lives(attempt.spec.key, rank)) {
        Wrong(attempt.spec, "lives and was said to be gone");
      }
    }
  }

  void Order(Attempt& attempt, StopLevel level) {
    backend_->Stop(TargetOf(attempt.spec), level, Soon()).IgnoreError();
    CheckTruth(attempt);
  }

  void Fence(Attempt& attempt) {
    const FenceResult fence = backend_->Fence(TargetOf(attempt.spec), Soon());
    if (!std::holds_alternative<FenceWon>(fence)) return;
    for (const RankLaunch& rank : attempt.spec.ranks) NoteGone(attempt, rank.rank);
    CheckTruth(attempt);
  }

  // Without faults, everything that is ended is found to be.
  void ComeToAnEnd() {
    cluster_.SetFaults({});
    MendAll();
    cluster_.Settle();
    for (Attempt& attempt : attempts_) {
      for (int round = 0; round < (copied_ ? 2000 : 40) && !wrong_ && !attempt.ended; ++round) {
        if (copied_) absl::SleepFor(absl::Milliseconds(2));  // copies take real time
        Observe(attempt);
        Fence(attempt);
        Order(attempt, StopLevel::kKill);
        cluster_.Step();
      }
      if (!attempt.ended) Wrong(attempt.spec, "does not come to an end");
      CheckTruth(attempt);
    }
  }

  void Wrong(const LaunchSpec& spec, const std::string& what) {
    if (!wrong_) wrong_ = fmt::format("{} {}", spec.key, what);
  }

  tp::testing::TempDir dir_{"/dev/shm"};  // no disk to wait for
  const PlantedBug bug_;
  const bool copied_;
  Random random_;
  SimCluster cluster_;
  std::unique_ptr<NodeBackend> backend_;
  std::vector<Attempt> attempts_;
  std::optional<std::string> wrong_;
  int observations_ = 0;
  int restarts_ = 0;
};

TEST(RandomInterleavings, WhatIsSaidIsTrue) {
  int observations = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Episode episode(seed, PlantedBug::kNone);
    const std::optional<std::string> wrong = episode.Play(120);
    EXPECT_FALSE(wrong) << "seed " << seed << ": " << *wrong;
    observations += episode.observations();
  }
  EXPECT_GT(observations, 6000);
}

TEST(RandomInterleavings, WhatIsSaidIsTrueWhereStorageIsCopied) {
  int observations = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Episode episode(seed, PlantedBug::kNone, true);
    const std::optional<std::string> wrong = episode.Play(120);
    EXPECT_FALSE(wrong) << "seed " << seed << ": " << *wrong;
    observations += episode.observations();
  }
  EXPECT_GT(observations, 2000);
}

class Planted : public ::testing::TestWithParam<PlantedBug> {};

TEST_P(Planted, IsNoticed) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    if (Episode(seed, GetParam()).Play(120)) return;
  }
  FAIL() << "the oracle did not notice";
}

TEST_P(Planted, IsNoticedWhereStorageIsCopied) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    if (Episode(seed, GetParam(), true).Play(120)) return;
  }
  FAIL() << "the oracle did not notice";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted,
                         ::testing::Values(PlantedBug::kReapLies, PlantedBug::kLateOrdersStart,
                                           PlantedBug::kBootIdChanges, PlantedBug::kMarksAreHidden));

}  // namespace
}  // namespace tp::node
