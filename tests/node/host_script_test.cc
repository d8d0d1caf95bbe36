#include "backends/node/host_script.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "backends/node/host_reply.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/subprocess.h"
#include "launch/host.h"
#include "tests/launch/temp_dir.h"

namespace tp::node {
namespace {

using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;

constexpr char kToken[] = "0123456789abcdef";

// Runs what a login shell there would be given, with `home` as the home directory.
CommandResult RunBootstrap(const std::string& shell, const std::string& command, const std::string& input,
                           const std::string& home = "/nonexistent") {
  const auto result = RunCommand({.argv = {shell, "-c", command},
                                  .env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8"},
                                  .stdin_bytes = input,
                                  .max_output_bytes = 1 << 20},
                                 absl::Now() + absl::Seconds(30));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : CommandResult{};
}

FramedReply RunProgram(const std::string& program, const std::string& body = "",
                       const std::string& home = "/nonexistent", const std::string& shell = "/bin/sh") {
  const std::string text = Frame(program, kToken);
  return ParseFrame(RunBootstrap(shell, Bootstrap(text.size()), text + body, home).out, kToken);
}

std::string EveryByte() {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

TEST(Quote, EveryByteButNulPassesUnchanged) {
  const std::string hostile = EveryByte() + "''$(touch /tmp/x)`id`\\\\\"\n\n";
  for (const char* shell : {"/bin/sh", "/bin/bash", "/bin/dash"}) {
    const FramedReply reply = RunProgram(fmt::format("printf '%s.' {}", Quote(hostile)), "", "/nonexistent", shell);
    ASSERT_TRUE(reply.whole) << shell;
    EXPECT_EQ(reply.whole->out, hostile + ".") << shell;
  }
}

TEST(Quote, RandomTextsPassUnchanged) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    std::string program;
    std::string expected;
    for (int word = 0; word < 10; ++word) {
      std::string text;
      for (int64_t i = random.Between(0, 40); i > 0; --i) text += static_cast<char>(random.Between(1, 255));
      program += fmt::format("printf '%s|' {}\n", Quote(text));
      expected += text + "|";
    }
    const FramedReply reply = RunProgram(program);
    ASSERT_TRUE(reply.whole);
    EXPECT_EQ(reply.whole->out, expected);
  }
}

// Whatever the login shell is: nothing of it is special to csh or fish within single quotes.
TEST(Bootstrap, IsOneHarmlessLine) {
  const std::string command = Bootstrap(123);
  EXPECT_EQ(command.find_first_of("\n!\\"), std::string::npos);
  EXPECT_EQ(std::count(command.begin(), command.end(), '\''), 2);
}

TEST(Bootstrap, LeavesTheBodyToTheProgram) {
  const std::string body = EveryByte() + std::string(1, '\0') + std::string(200'000, 'z');
  const FramedReply reply = RunProgram("wc -c", body);
  ASSERT_TRUE(reply.whole);
  EXPECT_EQ(std::stoul(reply.whole->out), body.size());
}

TEST(Bootstrap, AProgramThatDidNotArriveWholeIsNotRun) {
  TempDir dir;
  const std::string text = Frame("touch " + Quote(dir.At("ran")), kToken);
  for (size_t size = 0; size < text.size(); size += 7) {
    const CommandResult result = RunBootstrap("/bin/sh", Bootstrap(text.size()), text.substr(0, size));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(dir.At("ran"))) << size;
  }
}

TEST(Frame, TellsTheProgramsExitCode) {
  for (const int code : {0, 1, 255}) {
    const FramedReply reply = RunProgram(fmt::format("exit {}", code));
    ASSERT_TRUE(reply.whole);
    EXPECT_EQ(reply.whole->exit_code, code);
  }
}

TEST(Frame, BannersAndHalfAnswersAreNoAnswers) {
  const std::string whole = fmt::format("\n{0} begin\nhost a\n\n{0} end 0\n", kToken);
  const std::string banner = "Welcome!\nhost evil\n\nffff begin\nboot evil\n\nffff end 0\n";
  const FramedReply reply = ParseFrame(banner + whole + "bye\n", kToken);
  ASSERT_TRUE(reply.whole);
  EXPECT_EQ(reply.whole->out, "host a\n");
  EXPECT_FALSE(ParseFrame(banner, kToken).begun);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseFrame(banner + whole.substr(0, size), kToken).whole) << size;
  }
}

TEST(ParseReply, SkipsWhatItDoesNotUnderstand) {
  const auto reply = ParseReply(
      "host n\xff$(x)\nboot b-1\nup 12.34\nnow x\nfree -\nrank x 1\nrank 3 6\nrank 4 75 words of it\nmark 1\n"
      "mark 5 1 tp-a-e1-1-s0-a1/n\nmarks end\nenv =x\nenv A=b=c\nup 99999999999999999999\nup 5\nlaunched 0\n");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->facts.host, "n___x_");
  EXPECT_EQ(reply->facts.uptime_s, 5);
  EXPECT_EQ(reply->ranks, (std::map<size_t, int>{{3, 6}, {4, 75}}));
  EXPECT_EQ(reply->rank_words.at(4), "words of it");
  EXPECT_EQ(reply->marks, (std::vector<Mark>{{5, 1, "tp-a-e1-1-s0-a1/n"}}));
  EXPECT_TRUE(reply->marks_whole);
  EXPECT_EQ(reply->env, (std::map<std::string, std::string>{{"A", "b=c"}}));
  EXPECT_FALSE(reply->facts.now);
  EXPECT_FALSE(ParseReply("host a\nboot b\n"));
  EXPECT_FALSE(ParseReply(""));
}

RankBinary BinaryOf(const std::string& bytes) {
  RankBinary binary{bytes, ""};
  Sha256 hash;
  hash.Update(bytes);
  binary.sha256 = hash.HexDigest();
  return binary;
}

const std::string kStandIn = "#!/bin/sh\n[ \"$1\" = version ] && echo 'tp-rank 1'\n";

std::string Deliver(const RankBinary& binary, const std::string& sent, const std::string& home) {
  const FramedReply reply = RunProgram(DeliverProgram(binary, 0, kToken), sent, home);
  return reply.whole ? reply.whole->out : "no answer";
}

TEST(DeliverProgram, StoresWhatRunsAndNothingElse) {
  TempDir home;
  const RankBinary binary = BinaryOf(kStandIn);
  EXPECT_THAT(Deliver(binary, kStandIn, home.path()), HasSubstr("delivered "));
  EXPECT_EQ(ReadText(home.At(".tp/" + binary.file_name())), kStandIn);
  struct stat about {};
  ASSERT_EQ(stat(home.At(".tp").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  const auto probe = RunProgram(ProbeProgram(binary), "", home.path());
  ASSERT_TRUE(probe.whole);
  EXPECT_FALSE(ParseReply(probe.whole->out)->no_rank);
}

TEST(DeliverProgram, TruncatedOrChangedBytesAreRefusedAndLeaveNothing) {
  TempDir home;
  const RankBinary binary = BinaryOf(kStandIn);
  for (const std::string& sent : {kStandIn.substr(0, 10), std::string(), kStandIn + "x", "X" + kStandIn.substr(1)}) {
    EXPECT_THAT(Deliver(binary, sent, home.path()), HasSubstr("why "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(home.At(".tp")));
}

TEST(DeliverProgram, WhatDoesNotRunIsRefusedWithTheReason) {
  TempDir home;
  const std::string bytes = "#!/bin/sh\necho nonsense\n";
  EXPECT_THAT(Deliver(BinaryOf(bytes), bytes, home.path()), HasSubstr("does not run from"));
  EXPECT_THAT(Deliver(BinaryOf(kStandIn), kStandIn, "/nonexistent"), HasSubstr("why "));
}

TEST(DeliverProgram, ADirectoryThatIsALinkIsNotTrusted) {
  TempDir home;
  TempDir elsewhere;
  std::filesystem::create_symlink(elsewhere.path(), home.At(".tp"));
  EXPECT_THAT(Deliver(BinaryOf(kStandIn), kStandIn, home.path()), HasSubstr("not a directory of this user"));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

TEST(ProbeProgram, ACorruptedRunnerIsNoRunner) {
  TempDir home;
  const RankBinary binary = BinaryOf(kStandIn);
  Deliver(binary, kStandIn, home.path());
  WriteText(home.At(".tp/" + binary.file_name()), "zeros");
  const auto probe = RunProgram(ProbeProgram(binary), "", home.path());
  ASSERT_TRUE(probe.whole);
  EXPECT_TRUE(ParseReply(probe.whole->out)->no_rank);
}

TEST(ProbeProgram, TellsTheFactsOfThisMachine) {
  const auto probe = RunProgram(ProbeProgram(BinaryOf(kStandIn)));
  ASSERT_TRUE(probe.whole);
  const auto reply = ParseReply(probe.whole->out);
  ASSERT_TRUE(reply);
  const auto self = launch::ReadHostIdentity();
  EXPECT_EQ(reply->facts.host, self->host);
  EXPECT_EQ(reply->facts.boot_id, self->boot_id);
  EXPECT_GT(reply->facts.uptime_s, 0);
  ASSERT_TRUE(reply->facts.now);
  EXPECT_LT(absl::AbsDuration(*reply->facts.now - absl::Now()), absl::Seconds(30));
}

class StorageCheck : public ::testing::Test {
 protected:
  std::string Check(const std::string& root, const std::string& dir) {
    const RankBinary binary = BinaryOf(kStandIn);
    Deliver(binary, kStandIn, home_.path());
    const auto reply = RunProgram(PrepareProgram(binary, {"dep", root, dir, kToken}), "", home_.path());
    const auto parsed = reply.whole ? ParseReply(reply.whole->out) : std::nullopt;
    return parsed ? parsed->storage : "no answer";
  }
  TempDir home_;
  TempDir root_;
};

TEST_F(StorageCheck, ProvesThatTheDirectoryIsTheOneThatTpdSees) {
  const std::string dir = root_.At("hetjob $(x) 'a\"b\\ \xff;&");
  EXPECT_EQ(Check("/no/such/root", dir), "noroot");
  EXPECT_EQ(Check(root_.path(), dir), "nodirectory");
  std::filesystem::create_directories(dir);
  EXPECT_EQ(Check(root_.path(), dir), "other");
  WriteText(fmt::format("{}/.shared.{}", dir, kToken), "another");
  EXPECT_EQ(Check(root_.path(), dir), "other");
  WriteText(fmt::format("{}/.shared.{}", dir, kToken), kToken);
  EXPECT_EQ(Check(root_.path(), dir), "ok");
  EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/.back.{}", dir, kToken)));
}

TEST(LaunchProgram, StartsNothingAfterItsTimeOrOnAnotherBoot) {
  TempDir home;
  const std::string bytes = "#!/bin/sh\n[ \"$1\" = version ] && echo 'tp-rank 1' && exit\ncat >\"${0%/*}/ran\"\n";
  const RankBinary binary = BinaryOf(bytes);
  Deliver(binary, bytes, home.path());
  const auto self = launch::ReadHostIdentity();
  LaunchRequest request{"key", "nonce", self->boot_id, 1, ""};
  auto reply = RunProgram(LaunchProgram(binary, request), "plan", home.path());
  ASSERT_TRUE(reply.whole);
  EXPECT_THAT(ParseReply(reply.whole->out)->late, HasSubstr("too late"));
  request = {"key", "nonce", "another boot", 1'000'000'000, ""};
  reply = RunProgram(LaunchProgram(binary, request), "plan", home.path());
  EXPECT_THAT(ParseReply(reply.whole->out)->late, HasSubstr("restarted"));
  EXPECT_FALSE(std::filesystem::exists(home.At(".tp/ran")));
  request.boot_id = self->boot_id;
  reply = RunProgram(LaunchProgram(binary, request), std::string("pl\0an", 5), home.path());
  EXPECT_EQ(ParseReply(reply.whole->out)->launched, 0);
  EXPECT_EQ(ReadText(home.At(".tp/ran")), std::string("pl\0an", 5));
}

// A mark is a whole entry of a process's environment.
TEST(InventoryProgram, FindsMarksAndNotWhatLooksLikeThem) {
  const std::string key = fmt::format("tp-inv{}-e1-1-s0-a1", getpid() % 1000);
  const auto sleeper = [&](const std::string& entry) {
    return RunCommand({.argv = {"/bin/sh", "-c", "exec 0<&- 1>&- 2>&-; setsid sleep 20 & "},
                       .env = {entry, "PATH=/usr/bin:/bin"},
                       .stdin_bytes = {}},
                      absl::Now() + absl::Seconds(5));
  };
  ASSERT_TRUE(sleeper("TP_RANK_TOKEN=" + key + "/0-0/n").ok());
  ASSERT_TRUE(sleeper("MINE=TP_RANK_TOKEN=" + key + "9/0-0/n").ok());
  const std::string deployment = fmt::format("inv{}", getpid() % 1000);
  std::vector<Mark> marks;
  const absl::Time patience = absl::Now() + absl::Seconds(10);
  while (marks.empty() && absl::Now() < patience) {
    const auto reply = RunProgram(InventoryProgram(deployment));
    ASSERT_TRUE(reply.whole);
    const auto parsed = ParseReply(reply.whole->out);
    ASSERT_TRUE(parsed && parsed->marks_whole);
    marks = parsed->marks;
  }
  ASSERT_FALSE(marks.empty());
  for (const Mark& mark : marks) EXPECT_EQ(mark.text, key + "/0-0/n");
}

}  // namespace
}  // namespace tp::node
