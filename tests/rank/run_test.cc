// Start, end and records of a rank.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "harness.h"

namespace tp::rank_test {
namespace {

class RunTest : public RankTest {};
TP_RANK_FOR_EVERY_KIND(RunTest);

TEST_P(RunTest, CleanExitIsRecorded) {
  Child runner = attempt_.Start(GetParam(), Shell("echo hello; pwd"));
  const std::string runner_pid = std::to_string(runner.pid());
  EXPECT_EQ(runner.Wait(), 0);
  const Record started = attempt_.Started();
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("exit"), "exited");
  EXPECT_EQ(exit.at("code"), "0");
  EXPECT_EQ(exit.at("term_signal"), "0");
  EXPECT_EQ(exit.at("signalled"), "no");
  EXPECT_EQ(exit.at("signalled_by"), "");
  EXPECT_EQ(exit.at("signals"), "");
  for (const Record& record : {started, exit}) {
    EXPECT_EQ(record.at("key"), attempt_.key());
    EXPECT_EQ(record.at("nonce"), "nonce-1");
    EXPECT_EQ(record.at("pool"), "0");
    EXPECT_EQ(record.at("rank"), "0");
    EXPECT_EQ(record.at("runner"), is_binary() ? "tp-rank" : "sh");
    EXPECT_EQ(record.at("runner_pid"), runner_pid);
    EXPECT_FALSE(record.at("boot_id").empty());
  }
  EXPECT_EQ(started.at("pid"), exit.at("pid"));
  EXPECT_EQ(started.at("started_boot_us"), exit.at("started_boot_us"));
  EXPECT_LE(std::stoll(exit.at("started_boot_us")), std::stoll(exit.at("ended_boot_us")));
  const std::string output = "hello\n" + attempt_.work().string() + "\n";
  EXPECT_EQ(ReadFile(attempt_.File(".log")), output);
  EXPECT_EQ(exit.at("log_bytes"), std::to_string(output.size()));
  EXPECT_FALSE(std::filesystem::exists(attempt_.File(".system.log")));
}

TEST_P(RunTest, LeavesNoTemporaryFiles) {
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(attempt_.dir())) {
    EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
  }
}

TEST_P(RunTest, ExitCodeIsTheJobs) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("exit 3")).Wait(), 3);
  EXPECT_EQ(attempt_.Exit().at("code"), "3");
}

TEST_P(RunTest, ExitCode137IsNoSignal) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("exit 137")).Wait(), 137);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("exit"), "exited");
  EXPECT_EQ(exit.at("code"), "137");
  EXPECT_EQ(exit.contains("ambiguous"), !is_binary());
}

TEST_P(RunTest, SignalThatKilledTheJobIsRecorded) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("kill -KILL $$")).Wait(), 137);
  const Record exit = attempt_.Exit();
  if (is_binary()) {
    EXPECT_EQ(exit.at("exit"), "killed");
    EXPECT_EQ(exit.at("code"), "-1");
    EXPECT_EQ(exit.at("term_signal"), "9");
  } else {
    EXPECT_EQ(exit.at("code"), "137");
    EXPECT_EQ(exit.at("ambiguous"), "yes");
  }
}

TEST_P(RunTest, SegmentationFaultIsRecorded) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("ulimit -c 0; kill -SEGV $$")).Wait(), 139);
  if (is_binary()) {
    EXPECT_EQ(attempt_.Exit().at("term_signal"), "11");
  }
}

TEST_P(RunTest, MissingProgramIsNotStarted) {
  EXPECT_EQ(attempt_.Start(GetParam(), {"no-such-program"}).Wait(), 127);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("exit"), "not_started");
  EXPECT_EQ(exit.at("code"), "127");
  EXPECT_EQ(exit.at("errno_name"), "ENOENT");
  EXPECT_FALSE(std::filesystem::exists(attempt_.File(".started")));
}

TEST_P(RunTest, FileThatIsNoProgramIsNotStarted) {
  WriteFile(attempt_.work() / "data", "text");
  EXPECT_EQ(attempt_.Start(GetParam(), {"./data"}).Wait(), 126);
  EXPECT_EQ(attempt_.Exit().at("errno_name"), "EACCES");
}

TEST_P(RunTest, MissingWorkingDirectoryIsNotStarted) {
  std::filesystem::remove(attempt_.work());
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), 127);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("exit"), "not_started");
  EXPECT_EQ(exit.at("failed_at"), "workdir");
}

TEST_P(RunTest, JobGetsItsToken) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("echo $TP_RANK_TOKEN")).Wait(), 0);
  EXPECT_EQ(ReadFile(attempt_.File(".log")), attempt_.key() + "/0-0/nonce-1\n");
}

TEST_P(RunTest, JobLeadsItsOwnSession) {
  EXPECT_EQ(attempt_.Start(GetParam(), Shell("cut -d' ' -f6 /proc/$$/stat; echo $$")).Wait(), 0);
  const std::string pid = attempt_.Exit().at("pid");
  EXPECT_EQ(ReadFile(attempt_.File(".log")), pid + "\n" + pid + "\n");
}

TEST_P(RunTest, JobReadsNothing) {
  Child runner = attempt_.Start(GetParam(), Shell("readlink /proc/self/fd/0"), {},
                                {.before_exec = {}, .stdin_content = "secret", .environment = {}});
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt_.File(".log")), "/dev/null\n");
}

TEST_P(RunTest, ThirtyRanksAtOnce) {
  constexpr int kRanks = 30;
  std::vector<Child> runners;
  for (int rank = 0; rank < kRanks; ++rank) {
    runners.push_back(attempt_.Start(GetParam(), Shell("echo x >>ran"), {.rank = rank, .extra = {}}));
  }
  for (Child& runner : runners) EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt_.work() / "ran").size(), 2U * kRanks);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(attempt_.Exit(rank).at("code"), "0");
}

TEST_P(RunTest, HeartbeatRises) {
  Child runner = attempt_.Start(GetParam(), {"sleep", "60"}, {.extra = {"--heartbeat-ms", "20"}});
  const auto count = [&] {
    const std::optional<Record> record = ReadRecord(attempt_.File(".heartbeat"));
    return record.has_value() ? std::stoll(record->at("count")) : 0;
  };
  EXPECT_TRUE(Eventually([&] { return count() >= 3; }));
  EXPECT_EQ(attempt_.Order(GetParam(), "kill"), 0);
  EXPECT_EQ(runner.Wait(), 137);
}

TEST_P(RunTest, WrongUsageIsRefused) {
  Arguments program = Program(GetParam());
  program.push_back("run");
  const Arguments good = attempt_.RunWords({"true"}, {});
  const std::vector<std::pair<std::string, std::string>> replacements = {
      {"--dir", "relative"},     {"--workdir", "relative"}, {"--key", "a/b"},      {"--key", ""},
      {"--nonce", "two\nlines"}, {"--pool", "-1"},          {"--rank", "../../x"}, {"--rank", ""},
  };
  for (const auto& [option, value] : replacements) {
    Arguments arguments = program;
    for (size_t i = 0; i < good.size(); ++i) {
      arguments.push_back(i > 0 && good[i - 1] == option ? value : good[i]);
    }
    EXPECT_EQ(RunProgram(arguments), kUsage) << option << " " << value;
  }
  Arguments no_job(program);
  no_job.insert(no_job.end(), good.begin(), good.end() - 1);
  EXPECT_EQ(RunProgram(no_job), kUsage);
  EXPECT_FALSE(std::filesystem::exists(attempt_.dir() / "attempt.claim"));
}

// Only the binary can put right what it inherited.
TEST(RunBinaryTest, JobInheritsNoDescriptorAndNoSignalState) {
  const auto spoil = [] {
    fcntl(STDERR_FILENO, F_DUPFD, 17);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
  };
  const auto output_of = [&](const Arguments& job) {
    Attempt attempt;
    Child runner =
        attempt.Start(RunnerKind::kBinary, job, {}, {.before_exec = spoil, .stdin_content = {}, .environment = {}});
    EXPECT_EQ(runner.Wait(), 0);
    return ReadFile(attempt.File(".log"));
  };
  EXPECT_EQ(output_of({"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"}),
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  EXPECT_EQ(output_of({"ls", "/proc/self/fd"}), "0\n1\n2\n3\n") << "3 is the listed directory";
}

TEST(RunBinaryTest, JobKeepsTheCallersUmask) {
  Attempt attempt;
  Child runner = attempt.Start(RunnerKind::kBinary, Shell("umask"), {},
                               {.before_exec = [] { umask(0037); }, .stdin_content = {}, .environment = {}});
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt.File(".log")), "0037\n");
}

TEST(RunBinaryTest, RunsWithClosedStdio) {
  Attempt attempt;
  const auto close_all = [] {
    for (int fd = 0; fd < 3; ++fd) close(fd);
  };
  Child runner = attempt.Start(RunnerKind::kBinary, {"echo", "out"}, {},
                               {.before_exec = close_all, .stdin_content = {}, .environment = {}});
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(ReadFile(attempt.File(".log")), "out\n");
}

TEST(StubTest, PrefersTheBinaryNextToIt) {
  Attempt attempt;
  const std::filesystem::path stub = attempt.dir() / "tp-rank.sh";
  std::filesystem::copy_file(TP_RANK_STUB, stub);
  Arguments arguments = {"sh",
                         "-c",
                         "ln -s '" TP_RANK_BINARY "' \"$1/tp-rank-$(uname -m)\"; shift; exec sh \"$@\"",
                         "sh",
                         attempt.dir().string(),
                         stub.string(),
                         "run"};
  for (const std::string& word : attempt.RunWords({"true"}, {})) arguments.push_back(word);
  EXPECT_EQ(RunProgram(arguments), 0);
  EXPECT_EQ(attempt.Exit().at("runner"), "tp-rank");
}

}  // namespace
}  // namespace tp::rank_test
