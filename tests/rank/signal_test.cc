// Signals from tpd and from others.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "harness.h"

namespace tp::rank_test {
namespace {

class SignalTest : public RankTest {
 protected:
  // A job that catches the named signal, leaves a mark and exits with 0.
  static Arguments CatchingJob(const std::string& signal_name) {
    return Shell("trap 'touch caught; exit 0' " + signal_name + "; touch ready; while :; do sleep 0.02; done");
  }
};
TP_RANK_FOR_EVERY_KIND(SignalTest);

TEST_P(SignalTest, TermFromOutsideIsForwardedAndNeverSuccess) {
  Child runner = attempt_.Start(GetParam(), CatchingJob("TERM"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  runner.Signal(SIGTERM);
  EXPECT_EQ(runner.Wait(), 143);
  EXPECT_TRUE(attempt_.HasMark("caught"));
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("code"), "0");
  EXPECT_EQ(exit.at("signalled"), "yes");
  EXPECT_EQ(exit.at("signalled_by"), "other");
  EXPECT_TRUE(exit.at("signals").starts_with("TERM:other:"));
}

TEST_P(SignalTest, TermOfTpdIsRecordedAsTpds) {
  Child runner = attempt_.Start(GetParam(), CatchingJob("TERM"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "term"), 0);
  EXPECT_EQ(runner.Wait(), 143);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("signalled"), "yes");
  EXPECT_EQ(exit.at("signalled_by"), "tpd");
  EXPECT_TRUE(exit.at("signals").starts_with("TERM:tpd:"));
}

TEST_P(SignalTest, FirstSignalNamesTheSender) {
  Child runner = attempt_.Start(GetParam(), Shell("trap 'touch first' TERM; touch ready;"
                                                  "while [ ! -e go ]; do sleep 0.02; done; exit 5"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "term"), 0);
  ASSERT_TRUE(attempt_.WaitForMark("first"));
  runner.Signal(SIGTERM);
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 5);
  EXPECT_EQ(attempt_.Exit().at("signalled_by"), "tpd");
}

TEST_P(SignalTest, WarningReachesOnlyProcessesThatCatchIt) {
  Child runner =
      attempt_.Start(GetParam(), Shell("sleep 60 & echo $! >bystander;"
                                       "(trap 'touch inner' USR1; touch inner_ready; while :; do sleep 0.02; done) &"
                                       "trap 'touch caught' USR1; touch ready;"
                                       "while [ ! -e go ]; do sleep 0.02; done; kill %1 %2 2>/dev/null; exit 0"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  ASSERT_TRUE(attempt_.WaitForMark("inner_ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "warn"), 0);
  EXPECT_TRUE(attempt_.WaitForMark("caught"));
  EXPECT_TRUE(attempt_.WaitForMark("inner"));
  EXPECT_TRUE(IsRunning(std::stoi(ReadFile(attempt_.work() / "bystander"))));
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 143);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("code"), "0");
  EXPECT_EQ(exit.at("signalled_by"), "tpd");
  EXPECT_TRUE(exit.at("signals").starts_with("USR1:tpd:"));
}

TEST_P(SignalTest, WarningDoesNotKillAJobThatDoesNotCatchIt) {
  Child runner =
      attempt_.Start(GetParam(), Shell("touch ready; while [ ! -e go ]; do sleep 0.02; done; touch finished"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "warn"), 0);
  runner.Signal(SIGUSR1);
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 143);
  EXPECT_TRUE(attempt_.HasMark("finished"));
}

TEST_P(SignalTest, Usr1FromOutsideIsForwardedButOnlyRecorded) {
  Child runner = attempt_.Start(GetParam(), CatchingJob("USR1"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  runner.Signal(SIGUSR1);
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_TRUE(attempt_.HasMark("caught"));
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("signalled"), "no");
  EXPECT_TRUE(exit.at("signals").starts_with("USR1:other:"));
}

TEST_P(SignalTest, KillOfTpdEndsATreeThatIgnoresTerm) {
  Child runner = attempt_.Start(GetParam(), Shell("trap '' TERM; (trap '' TERM; exec setsid sleep 60) & echo $! >child;"
                                                  "touch ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  EXPECT_EQ(attempt_.Order(GetParam(), "kill"), 0);
  EXPECT_EQ(runner.Wait(), 137);
  EXPECT_FALSE(IsRunning(std::stoi(ReadFile(attempt_.work() / "child"))));
  EXPECT_TRUE(attempt_.Exit().at("signals").starts_with("KILL:tpd:"));
}

TEST_P(SignalTest, OtherSignalsDoNotEndTheRunner) {
  Child runner = attempt_.Start(GetParam(), Shell("touch ready; while [ ! -e go ]; do sleep 0.02; done"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  for (int number : {SIGHUP, SIGUSR2, SIGQUIT}) runner.Signal(number);
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 0);
}

TEST_P(SignalTest, OrderSaysWhatBecameOfIt) {
  EXPECT_EQ(attempt_.Order(GetParam(), "term"), kNoRecord);
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), 0);
  EXPECT_EQ(attempt_.Order(GetParam(), "term"), kProcessGone);
  EXPECT_EQ(attempt_.Order(GetParam(), "please"), kUsage);
  std::string claim = ReadFile(attempt_.File(".claim"));
  claim.replace(claim.find("boot_id=") + 8, 8, "00000000");
  std::filesystem::remove(attempt_.File(".claim"));
  WriteFile(attempt_.File(".claim"), claim);
  EXPECT_EQ(attempt_.Order(GetParam(), "term"), kOtherHost);
}

TEST_P(SignalTest, ReusedPidIsNotSignalled) {
  Child bystander(Arguments{"sleep", "60"});
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), 0);
  std::string claim = ReadFile(attempt_.File(".claim"));
  const std::string name = "runner_pid=";
  const size_t value = claim.find(name) + name.size();
  claim.replace(value, claim.find('\n', value) - value, std::to_string(bystander.pid()));
  std::filesystem::remove(attempt_.File(".claim"));
  WriteFile(attempt_.File(".claim"), claim);
  const std::string ticks = "runner_start_ticks=";
  const size_t ticks_value = claim.find(ticks) + ticks.size();
  claim.replace(ticks_value, claim.find('\n', ticks_value) - ticks_value, "1");
  WriteFile(attempt_.File(".claim"), claim);
  EXPECT_EQ(attempt_.Order(GetParam(), "kill"), kProcessGone);
  EXPECT_FALSE(bystander.HasEnded());
}

TEST(SignalBinaryTest, InterruptIsForwardedButOnlyRecorded) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary,
                               Shell("trap 'touch caught; exit 0' INT; touch ready; while :; do sleep 0.02; done"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  runner.Signal(SIGINT);
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_TRUE(attempt.HasMark("caught"));
  EXPECT_TRUE(attempt.Exit().at("signals").starts_with("INT:other:"));
}

// Also before the job has its process group or has been executed.
TEST(SignalBinaryTest, TermAtAnyMomentAfterTheClaimEndsTheJob) {
  for (int round = 0; round < 40; ++round) {
    Attempt attempt;
    Child runner = attempt.Start(RunnerKind::kBinary, {"sleep", "60"});
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(attempt.File(".claim")); }));
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    runner.Signal(SIGTERM);
    ASSERT_EQ(runner.Wait(), 143);
    EXPECT_EQ(attempt.Exit().at("term_signal"), "15");
    EXPECT_EQ(attempt.Exit().at("signalled"), "yes");
  }
}

TEST(SignalBinaryTest, OrderWithoutTheNonceIsIgnored) {
  constexpr int kOrderSignal = 35;
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary, Shell("touch ready; while [ ! -e go ]; do sleep 0.02; done"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  for (int value : {0, 1, 2, 3, -1}) {
    ASSERT_EQ(sigqueue(runner.pid(), kOrderSignal, sigval{.sival_int = value}), 0);
  }
  runner.Signal(kOrderSignal);
  EXPECT_TRUE(Eventually([&] { return ReadFile(attempt.File(".system.log")).find("nonce") != std::string::npos; }));
  WriteFile(attempt.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(attempt.Exit().at("signals"), "");
}

TEST(SignalBinaryTest, JournalKeepsTheFirstSixteen) {
  Attempt attempt;
  Child runner =
      attempt.Start(RunnerKind::kBinary, Shell("trap '' TERM; touch ready; while [ ! -e go ]; do sleep 0.02; done"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  for (int i = 0; i < 40; ++i) ASSERT_EQ(attempt.Order(RunnerKind::kBinary, "term"), 0);
  WriteFile(attempt.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 143);
  const std::string signals = attempt.Exit().at("signals");
  EXPECT_EQ(std::count(signals.begin(), signals.end(), ' '), 15);
}

}  // namespace
}  // namespace tp::rank_test
