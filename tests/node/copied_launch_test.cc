// Orders of events at the hand-over of an attempt whose files are copied, forced by holding calls back.
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/node/node_backend.h"
#include "launch/engine_call.h"
#include "tests/launch/temp_dir.h"
#include "tests/node/sim_cluster.h"

namespace tp::node {
namespace {

using namespace std::chrono_literals;

// The order to start arrives once a look has been answered, and that answer once the launch is over.
class LookBeforeLaunch final : public RemoteShell {
 public:
  explicit LookBeforeLaunch(SimCluster& cluster) : cluster_(cluster) {}

  RemoteResult Run(const RankHost& host, const RemoteProgram& program, absl::Time) override {
    if (!program.body.empty()) {
      Say(order_came_);
      EXPECT_TRUE(Await(answered_));
      return cluster_.Run(host, program);
    }
    RemoteResult answer = cluster_.Run(host, program);
    if (program.text.find("copies end") == std::string::npos) return answer;
    Say(answered_);
    EXPECT_TRUE(Await(launched_));
    return answer;
  }
  void Cancel() override {}

  bool AwaitOrder() { return Await(order_came_); }
  void LaunchIsOver() { Say(launched_); }

 private:
  void Say(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }
  bool Await(const bool& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&what] { return what; });
  }

  SimCluster& cluster_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool order_came_ = false;
  bool answered_ = false;
  bool launched_ = false;
};

TEST(CopiedLaunch, ALookOfBeforeTheOrderDoesNotTellThatTheAttemptIsAbsent) {
  tp::testing::TempDir dir;
  SimCluster cluster(1, 1, PlantedBug::kNone, dir.At("machines"));
  std::filesystem::create_directories(dir.At("storage"));
  tp::testing::WriteText(dir.At("tp-rank"), "any bytes");
  NodeOptions options{.deployment = "sim",
                      .storage_root = dir.At("storage"),
                      .rank_binary = dir.At("tp-rank"),
                      .data_directory = dir.path(),
                      .ssh = {},
                      .reader = {},
                      .copied = true};
  auto owned = std::make_unique<LookBeforeLaunch>(cluster);
  LookBeforeLaunch& shell = *owned;
  auto backend = NodeBackend::CreateOver(std::move(options), std::move(owned), std::make_unique<SimCopier>(cluster));
  ASSERT_TRUE(backend.ok()) << backend.status();
  (*backend)->SetWake([&shell](const std::string&) { shell.LaunchIsOver(); });

  LaunchSpec spec;
  spec.key = "tp-sim-e1-1-s0-a1";
  spec.nonce = "nonce-1";
  const std::string run = dir.At("storage/ada/train-1");
  spec.paths = {run + "/attempts/train-1", run + "/attempts/train-1/work", run + "/output", run + "/results/train"};
  spec.argv = {"program"};
  spec.log_max_bytes = 1 << 20;
  spec.heartbeat_ms = 1000;
  RankLaunch rank;
  rank.placement = {cluster.HostOf(0).node, cluster.HostOf(0).address, {}};
  spec.ranks.push_back(rank);
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>((*backend)->Launch(spec, absl::Now() + absl::Seconds(20))));
  ASSERT_TRUE(shell.AwaitOrder());

  const Observation seen = (*backend)->Observe({launch::TargetOf(spec)}, absl::Now() + absl::Seconds(20)).front();
  EXPECT_TRUE(cluster.OnItsWay(spec.key));
  const auto* present = std::get_if<Present>(&seen);
  ASSERT_NE(present, nullptr) << "told " << (std::holds_alternative<Absent>(seen) ? "absent" : "unknown");
  EXPECT_EQ(present->phase, EnginePhase::kWaiting);
}

}  // namespace
}  // namespace tp::node
