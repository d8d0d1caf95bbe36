// The end of the job's tree, by its runner and after its runner.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "harness.h"

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

class TreeTest : public RankTest {
 protected:
  pid_t PidIn(const std::string& name) const { return std::stoi(ReadFile(attempt_.work() / name)); }
};
TP_RANK_FOR_EVERY_KIND(TreeTest);

// Leaves a daemon behind: forked twice, in its own session, its parent gone.
constexpr char kDaemonize[] =
    "(setsid sh -c '$BEFORE echo $$ >daemon.part; mv daemon.part daemon; $BODY' &) ;"
    " while [ ! -e daemon ]; do sleep 0.01; done; ";

// `before` is done when the job goes on, `body` may still be to come.
std::string Daemonize(const std::string& body, const std::string& before = "") {
  std::string script = kDaemonize;
  script.replace(script.find("$BODY"), 5, body);
  script.replace(script.find("$BEFORE"), 7, before);
  return script;
}

TEST_P(TreeTest, DaemonsAreEndedBeforeTheEndRecord) {
  Child runner = attempt_.Start(GetParam(), Shell(Daemonize("exec sleep 60") + "exit 0"));
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_FALSE(IsRunning(PidIn("daemon")));
  EXPECT_EQ(attempt_.Exit().at("signalled"), "no");
}

TEST_P(TreeTest, DaemonThatIgnoresTermIsKilled) {
  Child runner =
      attempt_.Start(GetParam(), Shell(Daemonize("while :; do sleep 0.05; done", "trap \"\" TERM;") + "exit 4"),
                     {.extra = {"--end-grace-ms", "200"}});
  EXPECT_EQ(runner.Wait(), 4);
  EXPECT_FALSE(IsRunning(PidIn("daemon")));
  const Record exit = attempt_.Exit();
  EXPECT_GE(std::stoll(exit.at("ended_boot_us")) - std::stoll(exit.at("started_boot_us")),
            is_binary() ? 200'000 : 190'000);
}

TEST_P(TreeTest, LeftoversMayFinishOnTerm) {
  Child runner =
      attempt_.Start(GetParam(), Shell("(trap 'touch saved; exit' TERM; touch ready; while :; do sleep 0.02; done) &"
                                       " while [ ! -e ready ]; do sleep 0.01; done"));
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_TRUE(attempt_.HasMark("saved"));
}

TEST_P(TreeTest, KilledRunnerLeavesNoRecordAndReapEndsTheRest) {
  Child runner = attempt_.Start(GetParam(), Shell(Daemonize("exec sleep 60") + "touch ready; exec sleep 60"),
                                {.extra = {"--heartbeat-ms", "60000"}});
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  const pid_t job = std::stoi(attempt_.Started().at("pid"));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), kRunnerAlive);
  runner.Signal(SIGKILL);
  EXPECT_EQ(runner.Wait(), 1000 + SIGKILL);
  if (is_binary()) {
    EXPECT_TRUE(Eventually([&] { return !IsRunning(job); }));
  }
  EXPECT_TRUE(IsRunning(PidIn("daemon")));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap", "--check"})), kTreeNotGone);
  EXPECT_TRUE(IsRunning(PidIn("daemon")));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  EXPECT_FALSE(IsRunning(PidIn("daemon")));
  EXPECT_FALSE(IsRunning(job));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap", "--check"})), 0);
  EXPECT_FALSE(fs::exists(attempt_.File(".exit")));
}

TEST_P(TreeTest, ReapFindsTheSessionWithoutItsEnvironment) {
  Child runner = attempt_.Start(GetParam(),
                                Shell("env -i sh -c 'echo $$ >bare; exec sleep 60' &"
                                      " while [ ! -s bare ]; do sleep 0.01; done; touch ready; exec sleep 60"),
                                {.extra = {"--heartbeat-ms", "60000"}});
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  attempt_.Started();
  runner.Signal(SIGKILL);
  runner.Wait();
  EXPECT_TRUE(IsRunning(PidIn("bare")));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  EXPECT_FALSE(IsRunning(PidIn("bare")));
}

TEST_P(TreeTest, ReapLeavesOtherRanksAlone) {
  Child first = attempt_.Start(GetParam(), Shell("touch ready0; exec sleep 60"), {.rank = 0, .extra = {}});
  Child second = attempt_.Start(GetParam(), Shell("touch ready1; exec sleep 60"), {.rank = 1, .extra = {}});
  ASSERT_TRUE(attempt_.WaitForMark("ready0"));
  ASSERT_TRUE(attempt_.WaitForMark("ready1"));
  const pid_t other_job = std::stoi(attempt_.Started(1).at("pid"));
  first.Signal(SIGKILL);
  first.Wait();
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  EXPECT_TRUE(IsRunning(other_job));
  EXPECT_FALSE(second.HasEnded());
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait(), 143);
}

TEST_P(TreeTest, ReapNeedsARecordOfThisHost) {
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), kNoRecord);
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), 0);
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  std::string claim = ReadFile(attempt_.File(".claim"));
  claim.replace(claim.find("\nhost=") + 6, 0, "not-");
  WriteFile(attempt_.File(".claim"), claim);
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), kOtherHost);
}

TEST_P(TreeTest, UnusableCgroupIsDoneWithout) {
  Child runner = attempt_.Start(GetParam(), Shell(Daemonize("exec sleep 60")),
                                {.extra = {"--cgroup", (attempt_.dir() / "no-cgroup").string()}});
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(attempt_.Exit().at("cgroup"), "");
  EXPECT_FALSE(IsRunning(PidIn("daemon")));
}

TEST(TreeBinaryTest, KilledRunnerTakesTheFirstProcessWithIt) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary, Shell("trap '' TERM; touch ready; exec sleep 60"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  const pid_t job = std::stoi(attempt.Started().at("pid"));
  runner.Signal(SIGKILL);
  runner.Wait();
  EXPECT_TRUE(Eventually([&] { return !IsRunning(job); }));
}

TEST(TreeStubTest, TreeEndsWithinAHeartbeatOfItsRunner) {
  Attempt attempt;
  Child runner =
      attempt.Start(RunnerKind::kDash, Shell("touch ready; exec sleep 60"), {.extra = {"--heartbeat-ms", "50"}});
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  const pid_t job = std::stoi(attempt.Started().at("pid"));
  runner.Signal(SIGKILL);
  runner.Wait();
  EXPECT_TRUE(Eventually([&] { return !IsRunning(job); }));
}

bool AnyProcessHas(const std::string& environment_entry) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (ReadFile(entry.path() / "environ").find(environment_entry) != std::string::npos) return true;
  }
  return false;
}

TEST(TreeBinaryTest, RunnerKilledAtAnyMomentLeavesNothingThatReapDoesNotEnd) {
  for (int round = 0; round < 40; ++round) {
    Attempt attempt;
    Child runner = attempt.Start(RunnerKind::kBinary, Shell(Daemonize("exec sleep 60") + "exec sleep 60"));
    ASSERT_TRUE(Eventually([&] { return fs::exists(attempt.File(".claim")); }));
    std::this_thread::sleep_for(std::chrono::microseconds(250 * round));
    runner.Signal(SIGKILL);
    runner.Wait();
    ASSERT_EQ(RunProgram(attempt.Command(RunnerKind::kBinary, {"reap"})), 0);
    EXPECT_FALSE(AnyProcessHas("TP_RANK_TOKEN=" + attempt.key() + "/")) << round;
    EXPECT_FALSE(fs::exists(attempt.File(".exit")));
  }
}

// Processes that come and go while the tree is being ended.
TEST(TreeBinaryTest, RestlessTreeIsEnded) {
  Attempt attempt;
  Child runner =
      attempt.Start(RunnerKind::kBinary,
                    Shell("breed() { trap '' TERM; while :; do sleep 0.001 & (sleep 0.002 &) ; wait; done; };"
                          "breed & breed & setsid sh -c 'trap \"\" TERM; while :; do sleep 0.001; done' &"
                          "sleep 0.1; exit 9"),
                    {.extra = {"--end-grace-ms", "50"}});
  EXPECT_EQ(runner.Wait(), 9);
  EXPECT_EQ(RunProgram(attempt.Command(RunnerKind::kBinary, {"reap", "--check"})), 0);
}

// A program that is being executed has no environment yet: on a busy machine there is one at any moment.
TEST(TreeBinaryTest, OthersProgramsThatAreBeingExecutedLeaveNoDoubt) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary, {"true"}, {.extra = {}});
  EXPECT_EQ(runner.Wait(), 0);
  std::vector<Child> busy;
  for (int i = 0; i < 6; ++i) busy.emplace_back(Arguments{"sh", "-c", "while :; do /bin/true; done"});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunProgram(attempt.Command(RunnerKind::kBinary, {"reap", "--check"})), 0) << i;
  }
  for (Child& one : busy) one.Signal(SIGKILL);
}

class CgroupTest : public RankTest {
 protected:
  void SetUp() override {
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      if (!fs::exists(fs::path(root) / "cgroup.procs") || !fs::exists(fs::path(root) / "cgroup.controllers")) {
        continue;
      }
      parent_ = fs::path(root) / attempt_.dir().filename();
      std::error_code error;
      if (fs::create_directory(parent_, error)) return;
    }
    parent_.clear();
    GTEST_SKIP() << "no cgroup v2 hierarchy can be written here";
  }
  void TearDown() override {
    if (parent_.empty()) return;
    EXPECT_TRUE(Eventually([&] {
      rmdir(cgroup().c_str());
      return rmdir(parent_.c_str()) == 0;
    }));
  }
  Attempt::RunOptions WithCgroup() const {
    return {.extra = {"--cgroup", cgroup().string(), "--heartbeat-ms", "60000"}};
  }
  fs::path cgroup() const { return parent_ / "job"; }

 private:
  fs::path parent_;
};
TP_RANK_FOR_EVERY_KIND(CgroupTest);

TEST_P(CgroupTest, JobRunsAndEndsInIt) {
  Child runner = attempt_.Start(GetParam(), Shell("grep ^0:: /proc/self/cgroup; setsid sleep 60 &"), WithCgroup());
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_NE(ReadFile(attempt_.File(".log")).find("/job\n"), std::string::npos);
  EXPECT_EQ(attempt_.Exit().at("cgroup"), cgroup().string());
  EXPECT_FALSE(fs::exists(cgroup()));
}

TEST_P(CgroupTest, ReapFindsWhatHasNeitherEnvironmentNorSession) {
  Child runner = attempt_.Start(GetParam(),
                                Shell("env -i setsid sh -c 'echo $$ >bare; exec sleep 60' &"
                                      " while [ ! -s bare ]; do sleep 0.01; done; touch ready; exec sleep 60"),
                                WithCgroup());
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  attempt_.Started();
  const pid_t bare = std::stoi(ReadFile(attempt_.work() / "bare"));
  runner.Signal(SIGKILL);
  runner.Wait();
  EXPECT_TRUE(IsRunning(bare));
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  EXPECT_FALSE(IsRunning(bare));
}

TEST_P(CgroupTest, GroupOfOthersIsLeftAlone) {
  fs::create_directory(cgroup());
  const std::string join = "echo 0 >" + cgroup().string() + "/cgroup.procs; exec sleep 60";
  Child bystander(Shell(join));
  ASSERT_TRUE(Eventually([&] { return !ReadFile(cgroup() / "cgroup.procs").empty(); }));
  Child runner = attempt_.Start(GetParam(), Shell("touch ready; exec sleep 60"), WithCgroup());
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Started().at("cgroup"), "");
  runner.Signal(SIGKILL);
  runner.Wait();
  EXPECT_EQ(RunProgram(attempt_.Command(GetParam(), {"reap"})), 0);
  EXPECT_FALSE(bystander.HasEnded());
  bystander.Signal(SIGKILL);
  bystander.Wait();
  EXPECT_TRUE(Eventually([&] { return rmdir(cgroup().c_str()) == 0; }));
}

TEST_P(CgroupTest, KillOrderReachesTheWholeGroup) {
  Child runner = attempt_.Start(GetParam(),
                                Shell("trap '' TERM; env -i setsid sh -c 'echo $$ >bare; exec sleep 60' &"
                                      " while [ ! -s bare ]; do sleep 0.01; done; touch ready;"
                                      " while :; do sleep 0.05; done"),
                                WithCgroup());
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "kill"), 0);
  EXPECT_EQ(runner.Wait(), 137);
  EXPECT_FALSE(IsRunning(std::stoi(ReadFile(attempt_.work() / "bare"))));
}

}  // namespace
}  // namespace tp::rank_test
