// The job's output: every byte, in order, with rotation.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "harness.h"

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

class LogTest : public RankTest {};
TP_RANK_FOR_EVERY_KIND(LogTest);

std::string Numbers(int from, int to, char separator) {
  std::string text;
  for (int i = from; i <= to; ++i) text += std::to_string(i) + separator;
  return text;
}

struct KeptLog {
  uint64_t first_offset = 0;
  std::string bytes;
  uint64_t segment_count = 0;
};

// Reads all segments and checks that each begins where the one before ends.
KeptLog ReadKeptLog(const Attempt& attempt) {
  const std::string prefix = attempt.File(".log.").filename().string();
  std::vector<fs::path> segments;
  for (const auto& entry : fs::directory_iterator(attempt.dir())) {
    if (entry.path().filename().string().starts_with(prefix)) segments.push_back(entry.path());
  }
  std::sort(segments.begin(), segments.end());
  KeptLog kept;
  kept.segment_count = segments.size();
  for (const fs::path& segment : segments) {
    const std::string digits = segment.filename().string().substr(prefix.size());
    EXPECT_EQ(digits.size(), 20U);
    const uint64_t offset = std::stoull(digits);
    if (kept.bytes.empty()) kept.first_offset = offset;
    EXPECT_EQ(offset, kept.first_offset + kept.bytes.size());
    kept.bytes += ReadFile(segment);
  }
  kept.bytes += ReadFile(attempt.File(".log"));
  return kept;
}

TEST_P(LogTest, TenMegabytesInOneLineThenProgressBars) {
  constexpr int kLast = 1'400'000;
  const std::string script = "seq 1 " + std::to_string(kLast) +
                             " | tr '\\n' ','; i=0; while [ $i -le 100 ]; do printf '\\r%s%%' $i;"
                             " i=$((i+1)); done; printf 'the end'";
  EXPECT_EQ(attempt_.Start(GetParam(), Shell(script)).Wait(), 0);
  std::string expected = Numbers(1, kLast, ',');
  ASSERT_GT(expected.size(), 9'900'000U);
  for (int i = 0; i <= 100; ++i) expected += "\r" + std::to_string(i) + "%";
  expected += "the end";
  const std::string log = ReadFile(attempt_.File(".log"));
  EXPECT_EQ(log.size(), expected.size());
  EXPECT_TRUE(log == expected);
  EXPECT_EQ(attempt_.Exit().at("log_bytes"), std::to_string(expected.size()));
}

TEST_P(LogTest, NothingIsLostBelowTheCap) {
  const std::string expected = Numbers(1, 20'000, '\n');
  ASSERT_LT(expected.size(), 128U * 1024);
  EXPECT_EQ(attempt_.Start(GetParam(), {"seq", "20000"}, {.extra = {"--log-max-bytes", "131072"}}).Wait(), 0);
  const KeptLog kept = ReadKeptLog(attempt_);
  EXPECT_GE(kept.segment_count, 1U);
  EXPECT_EQ(kept.first_offset, 0U);
  EXPECT_TRUE(kept.bytes == expected);
  EXPECT_EQ(attempt_.Exit().at("log_bytes"), std::to_string(expected.size()));
}

TEST_P(LogTest, OldestSegmentsGoAboveTheCap) {
  constexpr uint64_t kCap = 131072;
  const std::string expected = Numbers(1, 200'000, '\n');
  EXPECT_EQ(attempt_.Start(GetParam(), {"seq", "200000"}, {.extra = {"--log-max-bytes", std::to_string(kCap)}}).Wait(),
            0);
  const KeptLog kept = ReadKeptLog(attempt_);
  EXPECT_LE(kept.bytes.size(), kCap);
  EXPECT_GE(kept.bytes.size(), kCap / 2);
  EXPECT_EQ(kept.first_offset + kept.bytes.size(), expected.size());
  EXPECT_TRUE(kept.bytes == expected.substr(kept.first_offset));
  EXPECT_EQ(attempt_.Exit().at("log_bytes"), std::to_string(expected.size()));
}

TEST_P(LogTest, JobMayCloseItsOutput) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("echo before; exec >&- 2>&-; sleep 0.1; touch done")).Wait(), 0);
  EXPECT_TRUE(attempt_.HasMark("done"));
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "before\n");
}

TEST_P(LogTest, OutputOfLeftoversIsKept) {
  EXPECT_EQ(attempt_
                .Start(GetParam(), Shell("(trap 'echo last words; exit' TERM; touch ready;"
                                         " while :; do sleep 0.01; done 2>/dev/null) &"
                                         " while [ ! -e ready ]; do sleep 0.01; done; echo main"))
                .Wait(),
            0);
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "main\nlast words\n");
}

TEST_P(LogTest, StdoutAndStderrKeepTheirOrder) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2")).Wait(), 0);
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "1\n2\n3\n4\n");
}

TEST_P(LogTest, ProcessOutsideTheTreeThatHoldsTheOutputHoldsNothingUp) {
  Child runner =
      attempt_.Start(GetParam(), Shell("echo early; touch ready; while [ ! -e go ]; do sleep 0.01; done; echo late"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  const std::string output = "/proc/" + attempt_.Started().at("pid") + "/fd/1";
  const int held = open(output.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "early\nlate\n");
  close(held);
}

// The runner's child that has the log open.
pid_t FindLogHelper(pid_t runner, const fs::path& log) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string status = ReadFile(entry.path() / "status");
    if (status.find("\nPPid:\t" + std::to_string(runner) + "\n") == std::string::npos) continue;
    std::error_code error;
    for (const auto& fd : fs::directory_iterator(entry.path() / "fd", error)) {
      if (fs::read_symlink(fd.path(), error) == log) return std::stoi(name);
    }
  }
  return 0;
}

TEST(LogBinaryTest, KilledLogHelperIsReplaced) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary,
                               Shell("echo early; touch ready; while [ ! -e go ]; do sleep 0.01; done; echo late"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  ASSERT_TRUE(Eventually([&] { return ReadFile(attempt.File(".log")) == "early\n"; }));
  pid_t helper = 0;
  ASSERT_TRUE(Eventually([&] { return (helper = FindLogHelper(runner.pid(), attempt.File(".log"))) > 0; }));
  ASSERT_EQ(kill(helper, SIGKILL), 0);
  WriteFile(attempt.work() / "go", "");
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt.File(".log")), "early\nlate\n");
  EXPECT_EQ(attempt.Exit().at("log_bytes"), "11");
}

// A hung storage stops the log helper; it must not stop the runner's loop.
TEST(LogBinaryTest, StoppedLogHelperDoesNotDelayOrders) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary, Shell("touch ready; exec sleep 60"));
  ASSERT_TRUE(attempt.WaitForMark("ready"));
  const pid_t job = std::stoi(attempt.Started().at("pid"));
  pid_t helper = 0;
  ASSERT_TRUE(Eventually([&] { return (helper = FindLogHelper(runner.pid(), attempt.File(".log"))) > 0; }));
  ASSERT_EQ(kill(helper, SIGSTOP), 0);
  EXPECT_EQ(attempt.Order(RunnerKind::kBinary, "term"), 0);
  EXPECT_TRUE(Eventually([&] { return !IsRunning(job); }));
  EXPECT_FALSE(runner.HasEnded());
  ASSERT_EQ(kill(helper, SIGCONT), 0);
  EXPECT_EQ(runner.Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace tp::rank_test
