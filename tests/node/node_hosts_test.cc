// The node backend against real sshd hosts that are cut off, frozen, killed, restarted, or refuse the login.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/conformance/node_world.h"

namespace tp::node {
namespace {

using ::testing::HasSubstr;

constexpr int kHosts = 8;

const tp::testing::SshHosts& Hosts() {
  static const tp::testing::SshHosts hosts(kHosts);
  return hosts;
}

class NodeHosts : public ::testing::Test {
 protected:
  // Ranks on the given hosts, in order.
  LaunchSpec Spec(const std::vector<int>& hosts, const std::string& program) {
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
    for (size_t i = 0; i < hosts.size(); ++i) {
      RankLaunch rank;
      rank.rank = static_cast<int>(i);
      rank.placement = {Hosts().Node(hosts[i]), Hosts().Address(hosts[i]), {}};
      rank.env = {{conformance::kProgramVariable, program},
                  {conformance::kNonceVariable, spec.nonce},
                  {"TP_TEST_WITNESS", fmt::format("{}/witness-0-{}", spec.paths.output_dir, i)}};
      spec.ranks.push_back(rank);
    }
    return spec;
  }
  static AttemptTarget TargetOf(const LaunchSpec& spec) {
    AttemptTarget target{spec.key, spec.nonce, spec.paths.attempt_dir, {static_cast<int>(spec.ranks.size())}};
    for (const RankLaunch& rank : spec.ranks) target.hosts.push_back({rank.placement.node, rank.placement.address});
    return target;
  }
  static absl::Time Soon(absl::Duration limit = absl::Seconds(40)) { return absl::Now() + limit; }
  Backend& backend() { return world_.backend(); }

  std::string Launch(const LaunchSpec& spec) {
    const LaunchResult result = backend().Launch(spec, Soon());
    if (const auto* refused = std::get_if<LaunchRefused>(&result)) return "refused: " + refused->reason;
    if (const auto* rejected = std::get_if<LaunchRejected>(&result)) return "rejected: " + rejected->reason;
    if (const auto* lost = std::get_if<LaunchIndeterminate>(&result)) return "indeterminate: " + lost->reason;
    return "accepted";
  }
  Observation Observe(const LaunchSpec& spec) {
    return backend().Observe({TargetOf(spec)}, Soon(absl::Seconds(10))).front();
  }
  std::string WhyUnknown(const LaunchSpec& spec) {
    const Observation seen = Observe(spec);
    const auto* unknown = std::get_if<Unknown>(&seen);
    return unknown != nullptr ? unknown->why : "";
  }
  Present Await(const LaunchSpec& spec, const std::function<bool(const Present&)>& done,
                absl::Duration limit = absl::Seconds(40)) {
    const absl::Time until = Soon(limit);
    std::string last;
    while (absl::Now() < until) {
      const Observation seen = Observe(spec);
      if (const Present* present = std::get_if<Present>(&seen); present != nullptr && done(*present)) return *present;
      last = std::holds_alternative<Unknown>(seen) ? std::get<Unknown>(seen).why : "";
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "what was awaited did not come; last seen: " << last;
    return {};
  }
  Present AwaitStarted(const LaunchSpec& spec, absl::Duration limit = absl::Seconds(40)) {
    return Await(
        spec,
        [](const Present& present) {
          return std::all_of(present.ranks.begin(), present.ranks.end(),
                             [](const RankObservation& rank) { return rank.started.has_value(); });
        },
        limit);
  }
  Present AwaitFreed(const LaunchSpec& spec, absl::Duration limit = absl::Seconds(40)) {
    return Await(
        spec, [](const Present& present) { return present.freed; }, limit);
  }
  // Every observation for a while is Unknown, and says so.
  void IsUnknownFor(const LaunchSpec& spec, absl::Duration length, const std::string& word) {
    std::string why;
    for (const absl::Time until = absl::Now() + absl::Seconds(20); why.find(word) == std::string::npos;) {
      why = WhyUnknown(spec);
      ASSERT_LT(absl::Now(), until) << why;
    }
    for (const absl::Time until = absl::Now() + length; absl::Now() < until;) {
      const Observation seen = Observe(spec);
      ASSERT_TRUE(std::holds_alternative<Unknown>(seen)) << "alternative " << seen.index();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_THAT(WhyUnknown(spec), HasSubstr(word));
  }
  void RanOnce(const LaunchSpec& spec) {
    for (size_t rank = 0; rank < spec.ranks.size(); ++rank) {
      EXPECT_EQ(world_.NoncesThatRan(spec, 0, static_cast<int>(rank)), std::vector<std::string>{spec.nonce});
    }
  }
  void End(const LaunchSpec& spec) {
    EXPECT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()).ok());
    AwaitFreed(spec);
    EXPECT_EQ(world_.ProcessesLeft(spec), 0);
  }

  conformance::NodeWorld world_{Hosts()};
  int runs_ = 0;
};

// What one case broke must not fail the next.
class Mended : public NodeHosts {
 protected:
  ~Mended() override {
    for (const std::vector<std::string>& words : undo_) Hosts().Do(words);
    // Its connections were left; the next case begins when it answers again.
    if (!undo_.empty()) world_.node().ProbeNodes(Soon());
  }
  void Break(const std::vector<std::string>& words, const std::vector<std::string>& undo) {
    Hosts().Do(words);
    undo_.push_back(undo);
  }
  void Mend() {
    for (const std::vector<std::string>& words : undo_) Hosts().Do(words);
    undo_.clear();
  }

 private:
  std::vector<std::vector<std::string>> undo_;
};

TEST_F(Mended, ACutOfTwentySecondsHarmsNothing) {
  const LaunchSpec spec = Spec({1, 2}, "trap 0");
  ASSERT_EQ(Launch(spec), "accepted");
  AwaitStarted(spec);
  world_.AwaitReady(spec, 0, 1);
  Break({"cut", "2", "blackhole"}, {"mend", "2"});
  IsUnknownFor(spec, absl::Seconds(20), "node2 does not answer");
  const absl::Status stopped = backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon());
  EXPECT_TRUE(absl::IsUnavailable(stopped)) << stopped;
  EXPECT_THAT(std::string(stopped.message()), HasSubstr("node2"));
  Mend();
  // Rank 0 was told; rank 1 runs on, unharmed.
  const Present present = Await(spec, [](const Present& seen) { return seen.ranks[0].ended.has_value(); });
  EXPECT_EQ(present.ranks[1].tree, Tree::kAlive);
  EXPECT_FALSE(present.freed);
  ASSERT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kTerm, Soon()).ok());
  const Present freed = AwaitFreed(spec);
  EXPECT_EQ(freed.ranks[1].ended->signalled_by, SignalledBy::kTpd);
  RanOnce(spec);
}

TEST_F(Mended, AFrozenHostIsUnknownAndThawedGoesOn) {
  const LaunchSpec spec = Spec({3}, "hold");
  ASSERT_EQ(Launch(spec), "accepted");
  AwaitStarted(spec);
  Break({"freeze", "3"}, {"thaw", "3"});
  IsUnknownFor(spec, absl::Seconds(5), "node3 does not answer");
  const LaunchSpec other = Spec({3, 4}, "exit 0");
  EXPECT_THAT(Launch(other), HasSubstr("refused: node3 does not answer"));
  Mend();
  AwaitStarted(spec);
  EXPECT_TRUE(std::holds_alternative<Absent>(Observe(other))) << "all ranks or none";
  RanOnce(spec);
  End(spec);
}

TEST_F(Mended, AHostThatIsKilledKeepsItsJobUntilItIsBackAndThenTheTreeIsGone) {
  const LaunchSpec spec = Spec({4, 5}, "hold");
  ASSERT_EQ(Launch(spec), "accepted");
  AwaitStarted(spec);
  world_.AwaitReady(spec, 0, 1);
  Break({"kill", "5"}, {"start", "5"});
  IsUnknownFor(spec, absl::Seconds(3), "node5 ");
  // The same for a tpd that has just started.
  world_.RestartBackend();
  IsUnknownFor(spec, absl::Seconds(1), "node5 ");
  Mend();
  const Present present = Await(spec, [](const Present& seen) { return seen.ranks[1].tree == Tree::kGone; });
  EXPECT_FALSE(present.ranks[1].ended);
  EXPECT_TRUE(present.ranks[1].started);
  EXPECT_EQ(present.ranks[0].tree, Tree::kAlive);
  EXPECT_FALSE(present.freed);
  // An order to a rank of before the restart is done.
  ASSERT_TRUE(backend().Stop(TargetOf(spec), StopLevel::kKill, Soon()).ok());
  AwaitFreed(spec);
  RanOnce(spec);
}

TEST_F(Mended, EndsBeforeTheHostWentAwayAreKnownWithoutIt) {
  const LaunchSpec spec = Spec({6}, "exit 3");
  ASSERT_EQ(Launch(spec), "accepted");
  AwaitFreed(spec);
  Break({"kill", "6"}, {"start", "6"});
  world_.RestartBackend();
  const Present freed = AwaitFreed(spec);
  EXPECT_EQ(freed.ranks[0].ended->code, 3);
}

TEST_F(Mended, AnotherHostKeyIsNeverTrusted) {
  const LaunchSpec before = Spec({7}, "exit 0");
  ASSERT_EQ(Launch(before), "accepted");
  // The open connection is of the old key: a restart of the host ends it.
  Break({"kill", "7"}, {"start", "7"});
  Break({"rekey", "7"}, {"trust"});
  Hosts().Do({"start", "7"});
  std::string why;
  for (const absl::Time until = Soon(); why.find("another host key") == std::string::npos && absl::Now() < until;) {
    why = Launch(Spec({7}, "exit 0"));
  }
  EXPECT_THAT(why, HasSubstr("refused: node7 shows another host key than known_hosts has"));
  Mend();
  world_.node().ProbeNodes(Soon());
  EXPECT_EQ(Launch(Spec({7}, "exit 0")), "accepted");
}

TEST_F(Mended, WithoutItsSshdAHostIsUnknownOnlyWhenTheConnectionIsNeeded) {
  const LaunchSpec spec = Spec({8}, "hold");
  ASSERT_EQ(Launch(spec), "accepted");
  AwaitStarted(spec);
  Break({"sshd", "8", "stop"}, {"sshd", "8", "start"});
  // The open connection serves on.
  EXPECT_TRUE(std::holds_alternative<Present>(Observe(spec)));
  End(spec);
}

TEST_F(Mended, AFullDiskOfTheHomeMakesRoomElsewhere) {
  Hosts().Exec(
      1,
      {"/bin/sh", "-c",
       "rm -rf /root/.tp /var/tmp/tp-0 && mkdir -p /root/.tp && mount -t tmpfs -o size=64k,mode=700 tmpfs /root/.tp"});
  const LaunchSpec spec = Spec({1}, "exit 0");
  EXPECT_EQ(Launch(spec), "accepted");
  AwaitFreed(spec);
  // Nowhere: refused, and each place says why.
  Hosts().Exec(1, {"/bin/sh", "-c",
                   "rm -rf /var/tmp/tp-0; mkdir /var/tmp/tp-0; mount -t tmpfs -o noexec,mode=700 tmpfs /var/tmp/tp-0"});
  const std::string why = Launch(Spec({1}, "exit 0"));
  EXPECT_THAT(why, HasSubstr("refused: tp-rank cannot be put on node1"));
  EXPECT_THAT(why, HasSubstr("No space left on device"));
  EXPECT_THAT(why, HasSubstr("does not run from /var/tmp/tp-0"));
  Hosts().Exec(1, {"/bin/sh", "-c", "umount /root/.tp; umount /var/tmp/tp-0; rm -rf /var/tmp/tp-0"});
  EXPECT_EQ(Launch(Spec({1}, "exit 0")), "accepted");
}

TEST_F(NodeHosts, StorageThatAHostDoesNotShareIsRefused) {
  // An empty filesystem over the storage, on host 2 alone.
  Hosts().Exec(2, {"/bin/mount", "-t", "tmpfs", "tmpfs", world_.storage_root()});
  const LaunchSpec spec = Spec({1, 2}, "exit 0");
  EXPECT_THAT(Launch(spec), HasSubstr("refused: node2 does not see in"));
  EXPECT_TRUE(std::holds_alternative<Absent>(Observe(spec)));
  Hosts().Exec(2, {"/bin/umount", world_.storage_root()});
  for (const auto& entry : std::filesystem::directory_iterator(spec.paths.attempt_dir)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }
}

TEST_F(NodeHosts, AnUnknownHostKeyAndABadAddressAreRefused) {
  LaunchSpec spec = Spec({1}, "exit 0");
  spec.ranks[0].placement.address = "-oProxyCommand=touch /tmp/x";
  EXPECT_THAT(Launch(spec), HasSubstr("no usable address"));
  spec = Spec({1}, "exit 0");
  spec.ranks[0].placement.address = "no-such-host.invalid";
  EXPECT_THAT(Launch(spec), HasSubstr("node1 "));
}

// As torchrun and gloo meet: rank 0 listens at its address, the other connects.
TEST_F(NodeHosts, RanksReachEachOtherUnderTheirAddresses) {
  LaunchSpec spec = Spec({1, 2}, "");
  spec.argv = {"/usr/bin/python3", "-c", R"py(
import os, socket, time
where = (os.environ["MASTER_ADDR"], 23456)
if os.environ["TP_NODE_RANK"] == "0":
    peer, _ = socket.create_server(where).accept()
    assert peer.recv(5) == b"hello"
    peer.sendall(b"there")
else:
    for _ in range(200):
        try:
            peer = socket.create_connection(where)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    peer.sendall(b"hello")
    assert peer.recv(5) == b"there"
)py"};
  for (RankLaunch& rank : spec.ranks) {
    rank.env = {{"MASTER_ADDR", Hosts().Address(1)}, {"TP_NODE_RANK", std::to_string(rank.rank)}};
  }
  ASSERT_EQ(Launch(spec), "accepted");
  const Present freed = AwaitFreed(spec);
  for (const RankObservation& rank : freed.ranks) {
    ASSERT_TRUE(rank.ended);
    EXPECT_TRUE(rank.ended->clean()) << tp::testing::ReadText(
        fmt::format("{}/0-{}.log", spec.paths.attempt_dir, rank.rank));
  }
}

TEST_F(NodeHosts, NodesTellsWhatWasSeenLast) {
  world_.node().ProbeNodes(Soon());
  const std::vector<NodeSight> nodes = world_.node().Nodes();
  ASSERT_EQ(nodes.size(), static_cast<size_t>(kHosts));
  for (const NodeSight& node : nodes) {
    EXPECT_TRUE(node.reachable) << node.why;
    EXPECT_FALSE(node.boot_id.empty());
    ASSERT_TRUE(node.clock_offset);
    EXPECT_LT(absl::AbsDuration(*node.clock_offset), absl::Seconds(5));
    EXPECT_GT(node.disk_free_bytes.value_or(0), 0);
  }
}

TEST_F(NodeHosts, TheSpecIsCheckedAgainstWhatTheBackendCanDo) {
  LaunchSpec spec = Spec({1}, "exit 0");
  spec.executor_config = fmt::format(R"({{"storage":{{"path":"{0}","tpd_path":"{0}/"}}}})", world_.storage_root());
  EXPECT_TRUE(backend().Validate(spec).ok());
  spec.executor_config = R"({"storage":{"path":"/elsewhere"}})";
  EXPECT_THAT(std::string(backend().Validate(spec).message()), HasSubstr("storage.path: '/elsewhere'"));
  spec = Spec({1}, "exit 0");
  spec.image = "debian";
  EXPECT_TRUE(absl::IsInvalidArgument(backend().Validate(spec)));
  spec = Spec({1, 2}, "exit 0");
  spec.ranks[1].pool = 1;
  spec.ranks[1].rank = 0;
  EXPECT_THAT(std::string(backend().Validate(spec).message()), HasSubstr("one pool"));
}

absl::Duration Percentile(std::vector<absl::Duration> times, int percent) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) * static_cast<size_t>(percent) / 100];
}

// One of eight hosts is blackholed, with a job on it that is observed together with the others: launches on the
// others and their observations take no longer.
TEST_F(Mended, SlowABlackholedHostSlowsNoOther) {
  const LaunchSpec stuck = Spec({8}, "hold");
  ASSERT_EQ(Launch(stuck), "accepted");
  AwaitStarted(stuck);
  constexpr int kLaunches = 100;
  const auto measure = [&] {
    std::vector<absl::Duration> launches;
    std::vector<absl::Duration> looks;
    for (int i = 0; i < kLaunches; ++i) {
      const LaunchSpec spec = Spec({1 + i % 7}, "exit 0");
      const absl::Time began = absl::Now();
      EXPECT_EQ(Launch(spec), "accepted");
      launches.push_back(absl::Now() - began);
      for (bool freed = false; !freed;) {
        const absl::Time looked = absl::Now();
        const std::vector<Observation> seen = backend().Observe({TargetOf(stuck), TargetOf(spec)}, Soon());
        looks.push_back(absl::Now() - looked);
        const auto* present = std::get_if<Present>(&seen[1]);
        freed = present != nullptr && present->freed;
      }
    }
    return std::pair(launches, looks);
  };
  measure();  // connections are open, tp-rank is there
  const auto [launches, looks] = measure();
  Break({"cut", "8", "blackhole"}, {"mend", "8"});
  const auto [launches_cut, looks_cut] = measure();
  const auto tell = [](const char* what, const auto& before, const auto& after) {
    std::cout << fmt::format(
        "{}: p50 {:.0f} -> {:.0f} ms, p99 {:.0f} -> {:.0f} ms\n", what,
        absl::ToDoubleMilliseconds(Percentile(before, 50)), absl::ToDoubleMilliseconds(Percentile(after, 50)),
        absl::ToDoubleMilliseconds(Percentile(before, 99)), absl::ToDoubleMilliseconds(Percentile(after, 99)));
  };
  tell("launch", launches, launches_cut);
  tell("observation", looks, looks_cut);
  EXPECT_LE(Percentile(launches_cut, 99), Percentile(launches, 99) + absl::Milliseconds(200));
  EXPECT_LE(Percentile(looks_cut, 99), Percentile(looks, 99) + absl::Milliseconds(200));
  Mend();
  AwaitStarted(stuck);
  End(stuck);
}

}  // namespace
}  // namespace tp::node
