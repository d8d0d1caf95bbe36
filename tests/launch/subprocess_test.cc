#include "base/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/fd.h"

namespace tp {
namespace {

absl::StatusOr<CommandResult> Shell(const std::string& script, absl::Duration limit = absl::Seconds(30)) {
  return RunCommand({.argv = {"/bin/sh", "-c", script}, .env = {"PATH=/usr/bin:/bin"}, .stdin_bytes = {}},
                    absl::Now() + limit);
}

TEST(RunCommand, GivesBackExitCodeAndBothStreams) {
  const auto result = Shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->term_signal, 0);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
}

TEST(RunCommand, TellsASignalFromAnExit) {
  const auto result = Shell("kill -9 $$");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, -1);
  EXPECT_EQ(result->term_signal, SIGKILL);
}

TEST(RunCommand, FeedsStdinWhateverTheProgramDoesWithIt) {
  const std::string input(1 << 20, 'x');
  const Command count = {.argv = {"/usr/bin/wc", "-c"}, .env = {}, .stdin_bytes = input};
  EXPECT_EQ(std::stoi(RunCommand(count, absl::Now() + absl::Seconds(30))->out), 1 << 20);
  const Command ignore = {.argv = {"/bin/true"}, .env = {}, .stdin_bytes = input};
  EXPECT_EQ(RunCommand(ignore, absl::Now() + absl::Seconds(30))->exit_code, 0);
}

TEST(RunCommand, PassesOnlyTheEnvironmentGiven) {
  setenv("TP_TEST_LEAK", "1", 1);
  const Command command = {.argv = {"/usr/bin/env"}, .env = {"ONLY=this"}, .stdin_bytes = {}};
  EXPECT_EQ(RunCommand(command, absl::Now() + absl::Seconds(30))->out, "ONLY=this\n");
}

TEST(RunCommand, LeaksNoDescriptor) {
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as a careless library would
  const auto result = Shell("ls /proc/self/fd | wc -l");
  close(leak);
  EXPECT_EQ(std::stoi(result->out), 4) << "0 to 2 and the one that ls reads";
}

TEST(RunCommand, KeepsToItsOutputCap) {
  const Command command = {.argv = {"/bin/sh", "-c", "yes | head -c 1000000; echo end >&2"},
                           .env = {"PATH=/usr/bin:/bin"},
                           .stdin_bytes = {},
                           .max_output_bytes = 100};
  const auto result = RunCommand(command, absl::Now() + absl::Seconds(30));
  EXPECT_EQ(result->out.size(), 100u);
  EXPECT_EQ(result->err, "end\n");
}

TEST(RunCommand, KillsWhatOverrunsItsDeadline) {
  const absl::Time begin = absl::Now();
  const auto result = Shell("sleep 600 & sleep 600", absl::Milliseconds(100));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST(RunCommand, IsKilledWhenNobodyWaitsForItAnyMore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd cancel(ends[0]);
  { const UniqueFd closed(ends[1]); }  // the other end's close makes it readable
  const Command command = {
      .argv = {"/bin/sh", "-c", "sleep 600 & sleep 600"}, .env = {}, .stdin_bytes = {}, .cancel_fd = cancel.get()};
  const absl::Time begin = absl::Now();
  EXPECT_EQ(RunCommand(command, begin + absl::Seconds(60)).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST(RunCommand, DoesNotWaitForWhoeverHoldsItsOutputOpen) {
  const absl::Time begin = absl::Now();
  const auto result = Shell("setsid sleep 20 & echo $!");
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  kill(std::stoi(result->out), SIGKILL);
}

TEST(RunCommand, SaysWhatCannotBeExecuted) {
  const Command command = {.argv = {"/no/such/program"}, .env = {}, .stdin_bytes = {}};
  EXPECT_EQ(RunCommand(command, absl::Now() + absl::Seconds(5)).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tp
