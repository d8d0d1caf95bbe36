#include <csignal>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LogsCommandTest : public CommandTest {
 protected:
  LogsCommandTest() { server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_RUNNING)}; }

  void Write(const std::string& rank, int64_t offset, const std::string& data) {
    v1::ReadLogResponse& chunk = server_.script().log.emplace_back();
    chunk.set_rank(rank);
    chunk.set_step(1);
    chunk.set_attempt(1);
    chunk.set_offset(offset);
    chunk.set_data(data);
  }
};

TEST_F(LogsCommandTest, AreRawBytes) {
  using namespace std::string_literals;
  const std::string bytes = "progress 10%\rprogress 20%\r\xff\0\x1b[1mbold\n"s;
  Write("0-0", 0, bytes);
  const Finished tp = Tp({"logs", "42"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out, bytes);
  EXPECT_EQ(tp.err, "");
}

TEST_F(LogsCommandTest, TenMegabytesInOneLineArriveWhole) {
  constexpr int64_t kChunkBytes = 1 << 20;
  for (int64_t i = 0; i < 10; ++i) Write("0-0", i * kChunkBytes, std::string(kChunkBytes, static_cast<char>('a' + i)));
  const Finished tp = Tp({"logs", "42"});
  ASSERT_EQ(tp.out.size(), 10U * kChunkBytes);
  EXPECT_EQ(tp.out.front(), 'a');
  EXPECT_EQ(tp.out.back(), 'j');
}

TEST_F(LogsCommandTest, FlagsBecomeTheRequest) {
  Tp({"logs", "42", "--rank", "3", "--rank", "1-0", "--attempt", "2", "--tail", "10", "--system", "--step", "1"});
  const v1::ReadLogRequest request = server_.asked().logs.at(0);
  EXPECT_THAT(request.ranks(), ElementsAre("0-3", "1-0"));
  EXPECT_EQ(request.attempt(), 2);
  EXPECT_EQ(request.step(), 1);
  EXPECT_EQ(request.tail_lines(), 10);
  EXPECT_TRUE(request.system());
  EXPECT_FALSE(request.follow());
}

TEST_F(LogsCommandTest, EverythingByDefault) {
  Tp({"logs", "42", "-f"});
  const v1::ReadLogRequest request = server_.asked().logs.at(0);
  EXPECT_THAT(request.ranks(), IsEmpty());
  EXPECT_EQ(request.tail_lines(), -1);
  EXPECT_TRUE(request.follow());
}

TEST_F(LogsCommandTest, AllRanksGetAPrefix) {
  Write("0-0", 0, "a\n");
  Write("0-1", 0, "b\n");
  EXPECT_EQ(Tp({"logs", "42", "--rank", "all"}).out, "0-0 | a\n0-1 | b\n");
  EXPECT_THAT(server_.asked().logs.at(0).ranks(), ElementsAre("*"));
}

TEST_F(LogsCommandTest, ARestartOfTheServerRepeatsNothing) {
  Write("0-0", 0, "one\n");
  Write("0-0", 4, "two\n");
  server_.script().failures["ReadLog"] = {{grpc::StatusCode::UNAVAILABLE, "going away"}};
  const Finished tp = Tp({"logs", "42", "--tail", "5"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out, "one\ntwo\n");
  EXPECT_EQ(tp.err, "the server is away; waiting for it\n");
  EXPECT_EQ(server_.asked().logs.at(1).tail_lines(), -1);
}

TEST_F(LogsCommandTest, CtrlCLeavesTheRunAlone) {
  Write("0-0", 0, "one\n");
  server_.script().log_hangs = true;
  const auto tp = Start({"logs", "-f", "42"});
  tp->AwaitOut("one\n");
  tp->Signal(SIGINT);
  const Finished finished = tp->Wait();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_EQ(finished.out, "one\n");
  EXPECT_EQ(finished.err, "42 goes on; follow it again with: tp logs -f 42\n");
}

TEST_F(LogsCommandTest, ExitStatusIsTheRuns) {
  server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_FAILED)};
  EXPECT_EQ(Tp({"logs", "-f", "42"}).exit_code, 0);
  EXPECT_EQ(Tp({"logs", "-f", "42", "--exit-status"}).exit_code, 1);
}

TEST_F(LogsCommandTest, WrongRanksAreUsageErrors) {
  const Finished tp = Tp({"logs", "42", "--rank", "first"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_EQ(tp.err, "tp: --rank first: write a rank (3), a pool and a rank (1-0), or all\n");
}

}  // namespace
}  // namespace tp::cli
