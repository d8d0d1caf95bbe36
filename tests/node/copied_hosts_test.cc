// Attempts on real sshd hosts that share no storage, one of which is full, shares after all, cannot be copied from for
// a while, or is declared dead with output on it.
#include <filesystem>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/conformance/node_world.h"

namespace tp::node {
namespace {

using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

const tp::testing::SshHosts& Hosts() {
  static const tp::testing::SshHosts hosts(2);
  return hosts;
}

class CopiedHosts : public ::testing::Test {
 protected:
  LaunchSpec Spec(int ranks, const std::string& program) {
    LaunchSpec spec;
    const int run = ++runs_;
    spec.key = fmt::format("tp-{}-e1-{}-s0-a1", world_.deployment(), run);
    spec.nonce = "nonce-1";
    spec.owner = "ada";
    const std::string dir = fmt::format("{}/ada/train-{}", world_.storage_root(), run);
    spec.paths = {dir + "/attempts/train-1", dir + "/attempts/train-1/work", dir + "/output", dir + "/results/train"};
    spec.argv = world_.Command();
    spec.overrides_json = {"{}"};
    spec.log_max_bytes = 1 << 20;
    spec.heartbeat_ms = 200;
    for (int i = 0; i < ranks; ++i) {
      RankLaunch rank;
      rank.rank = i;
      rank.placement = {Hosts().Node(i + 1), Hosts().Address(i + 1), {}};
      rank.env = {{conformance::kProgramVariable, program},
                  {conformance::kNonceVariable, spec.nonce},
                  {"TP_TEST_WITNESS", fmt::format("{}/witness-0-{}", spec.paths.output_dir, i)}};
      spec.ranks.push_back(rank);
    }
    return spec;
  }
  static AttemptTarget TargetOf(const LaunchSpec& spec, int dead = 0) {
    AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {static_cast<int>(spec.ranks.size())}};
    for (const RankLaunch& rank : spec.ranks) {
      target.hosts.push_back({rank.placement.node, rank.placement.address, rank.rank + 1 == dead});
    }
    return target;
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(90); }
  Backend& backend() { return world_.backend(); }

  Present Await(const AttemptTarget& target, const std::function<bool(const Present&)>& done) {
    std::string last;
    for (const absl::Time until = Soon(); absl::Now() < until;) {
      const Observation seen = backend().Observe({target}, Soon()).front();
      if (const Present* present = std::get_if<Present>(&seen)) {
        if (done(*present)) return *present;
        last = present->reason;
      } else if (const Unknown* unknown = std::get_if<Unknown>(&seen)) {
        last = "unknown: " + unknown->why;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "what was awaited did not come; last seen: " << last;
    return {};
  }
  Present AwaitFreed(const AttemptTarget& target) {
    return Await(target, [](const Present& present) { return present.freed; });
  }
  // Runs until all ranks have ended, on hosts of which `host` cannot be copied from.
  void EndWithoutCopiesFrom(int host, const LaunchSpec& spec) {
    ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
    Await(TargetOf(spec), [](const Present& present) {
      return std::all_of(present.ranks.begin(), present.ranks.end(),
                         [](const RankObservation& rank) { return rank.started.has_value(); });
    });
    for (int rank = 0; rank < static_cast<int>(spec.ranks.size()); ++rank) world_.AwaitReady(spec, 0, rank);
    Hosts().Exec(host, {"/bin/mount", "--bind", "/dev/null", "/usr/bin/rsync"});
    ASSERT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()).ok());
    const Present ending = Await(TargetOf(spec), [](const Present& present) {
      return present.reason.find("is still to be copied") != std::string::npos;
    });
    EXPECT_FALSE(ending.freed);
    EXPECT_THAT(ending.reason, HasSubstr(Hosts().Node(host)));
    for (const RankObservation& rank : ending.ranks) EXPECT_TRUE(rank.ended) << "the meter closes by it";
  }
  void LetCopy(int host) { Hosts().Exec(host, {"/bin/umount", "/usr/bin/rsync"}); }

  conformance::NodeCopiedWorld world_{Hosts()};
  int runs_ = 0;
};

TEST_F(CopiedHosts, StorageThatIsSharedIsRefused) {
  Hosts().Exec(1, {"/bin/umount", world_.storage_root()});
  const LaunchSpec spec = Spec(2, "exit 0");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  const Present present = AwaitFreed(TargetOf(spec));
  EXPECT_THAT(present.reason, HasSubstr("node1 sees in"));
  EXPECT_THAT(present.reason, HasSubstr("set backends.node.storage to shared"));
  EXPECT_EQ(present.claim, Claim::kNone);
}

TEST_F(CopiedHosts, AFullDiskIsTheReason) {
  Hosts().Exec(2, {"/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", world_.storage_root()});
  const LaunchSpec spec = Spec(2, "exit 0");
  WriteText(spec.paths.work_dir + "/large", std::string(4 << 20, 'x'));
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  const Present present = AwaitFreed(TargetOf(spec));
  EXPECT_THAT(present.reason, HasSubstr("the disk of node2"));
  EXPECT_TRUE(std::holds_alternative<FenceWon>(backend().Fence(TargetOf(spec), Soon())));
  EXPECT_TRUE(backend().Remove(TargetOf(spec), Soon()).ok());
  EXPECT_FALSE(fs::exists(world_.On(1, spec.paths.attempt_dir)));
  Hosts().Exec(2, {"/bin/umount", world_.storage_root()});
}

TEST_F(CopiedHosts, ALaunchIsWithdrawnWhileItsFilesAreCopied) {
  const LaunchSpec spec = Spec(2, "exit 0");
  WriteText(spec.paths.work_dir + "/large", std::string(256 << 20, 'x'));
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  const Present waiting = Await(TargetOf(spec), [](const Present& present) {
    return present.reason.find("copies the snapshot to node") != std::string::npos;
  });
  EXPECT_EQ(waiting.phase, EnginePhase::kWaiting);
  EXPECT_FALSE(waiting.cards_granted);
  const absl::Time began = absl::Now();
  EXPECT_TRUE(std::holds_alternative<FenceWon>(backend().Fence(TargetOf(spec), Soon())));
  EXPECT_LT(absl::Now() - began, absl::Seconds(5));
  EXPECT_EQ(AwaitFreed(TargetOf(spec)).claim, Claim::kFenced);
  EXPECT_TRUE(world_.NoncesThatRan(spec, 0, 0).empty());
}

TEST_F(CopiedHosts, OutputThatCannotBeCopiedYetKeepsTheAttemptEndingAcrossARestart) {
  const LaunchSpec spec = Spec(2, "trap 0");
  EndWithoutCopiesFrom(2, spec);
  world_.RestartBackend();
  for (int looks = 0; looks < 10; ++looks) {
    const Observation seen = backend().Observe({TargetOf(spec)}, Soon()).front();
    ASSERT_FALSE(std::holds_alternative<Absent>(seen));
    const Present* present = std::get_if<Present>(&seen);
    EXPECT_TRUE(present == nullptr || !present->freed);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  LetCopy(2);
  const Present freed = AwaitFreed(TargetOf(spec));
  EXPECT_EQ(freed.engine_end, EngineEnd::kNone);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ReadText(fmt::format("{}/witness-0-{}.nonces", spec.paths.output_dir, rank)), "nonce-1\n");
  }
  ASSERT_TRUE(backend().Remove(TargetOf(spec), Soon()).ok());
  for (const int host : {1, 2}) EXPECT_FALSE(fs::exists(world_.On(host, world_.storage_root() + "/ada")));
  EXPECT_FALSE(fs::exists(spec.paths.attempt_dir + "/.copied"));
}

TEST_F(CopiedHosts, AMachineDeclaredDeadWithOutputOnItIsANodeLostAndIsClearedWhenItIsBack) {
  const LaunchSpec spec = Spec(2, "trap 0");
  EndWithoutCopiesFrom(2, spec);
  const Present lost = AwaitFreed(TargetOf(spec, 2));
  EXPECT_EQ(lost.engine_end, EngineEnd::kNodeLost);
  EXPECT_THAT(lost.reason, HasSubstr("node2"));
  EXPECT_EQ(ReadText(spec.paths.output_dir + "/witness-0-0.nonces"), "nonce-1\n") << "the other's is here";
  EXPECT_FALSE(fs::exists(spec.paths.output_dir + "/witness-0-1.nonces"));
  LetCopy(2);
  const std::string there = world_.On(2, spec.paths.attempt_dir);
  for (const absl::Time until = Soon(); fs::exists(there) && absl::Now() < until;) {
    world_.node().ProbeNodes(Soon());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_FALSE(fs::exists(there));
}

TEST_F(CopiedHosts, AMachineThatWasDeclaredDeadAndLivesEndsWhatItRuns) {
  const LaunchSpec spec = Spec(2, "hold");
  ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
  for (const int rank : {0, 1}) world_.AwaitReady(spec, 0, rank);
  Await(TargetOf(spec), [](const Present& present) { return present.ranks[1].started && present.ranks[0].started; });
  const Present lost = Await(TargetOf(spec, 2), [](const Present& seen) { return seen.ranks[1].tree == Tree::kGone; });
  EXPECT_EQ(lost.engine_end, EngineEnd::kNodeLost);
  EXPECT_EQ(lost.ranks[0].tree, Tree::kAlive);
  ASSERT_TRUE(backend().Stop(TargetOf(spec, 2), StopLevel::kKill, Soon()).ok());
  AwaitFreed(TargetOf(spec, 2));
  for (const absl::Time until = Soon(); world_.ProcessesLeft(spec) > 0 && absl::Now() < until;) {
    world_.node().ProbeNodes(Soon());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(world_.ProcessesLeft(spec), 0);
}

TEST_F(CopiedHosts, ASecondAttemptOfARunFindsItsOutputAndEachRankItsOwn) {
  LaunchSpec spec = Spec(2, "");
  spec.argv = {"/bin/sh", "-c",
               "cd \"$OUT\"; cat state >>seen 2>/dev/null; echo \"$RANK\" >>state; echo of \"$RANK\" >\"own-$RANK\""};
  for (RankLaunch& rank : spec.ranks) {
    rank.env = {{"OUT", spec.paths.output_dir}, {"RANK", std::to_string(rank.rank)}, {"PATH", "/usr/bin:/bin"}};
  }
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const std::string dir = spec.paths.attempt_dir.substr(0, spec.paths.attempt_dir.size() - 1);
    spec.paths.attempt_dir = fmt::format("{}{}", dir, attempt);
    spec.paths.work_dir = spec.paths.attempt_dir + "/work";
    spec.key = fmt::format("{}{}", spec.key.substr(0, spec.key.size() - 1), attempt);
    ASSERT_TRUE(std::holds_alternative<LaunchAccepted>(backend().Launch(spec, Soon())));
    AwaitFreed(TargetOf(spec));
    ASSERT_TRUE(backend().Remove(TargetOf(spec), Soon()).ok());
  }
  const std::string output = spec.paths.output_dir;
  EXPECT_EQ(ReadText(output + "/state"), "0\n0\n");
  EXPECT_EQ(ReadText(output + "/.rank-0-1/state"), "1\n1\n");
  EXPECT_EQ(ReadText(output + "/own-1"), "of 1\n");
  EXPECT_EQ(ReadText(output + "/seen"), "0\n");
  EXPECT_EQ(ReadText(output + "/.rank-0-1/seen"), "1\n");
}

}  // namespace
}  // namespace tp::node
