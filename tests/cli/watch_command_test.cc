// -w: the same answer, again whenever something happens.
#include <csignal>

#include "cli/screen.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(PictureTest, OverwritesLinesAndClearsWhatIsLeft) {
  EXPECT_EQ(Picture("a\nb\n", 24), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
  EXPECT_EQ(Picture("", 24), "\x1b[H\x1b[J");
}

TEST(PictureTest, LeavesOutWhatDoesNotFit) {
  EXPECT_EQ(Picture("1\n2\n3\n4\n", 3), "\x1b[H1\x1b[K\r\n2\x1b[K\r\nand 2 more lines\x1b[K\x1b[J");
  EXPECT_THAT(Picture("1\n2\n3\n", 3), Not(HasSubstr("more")));
  EXPECT_THAT(Picture("1\n2\n3\n", 0), HasSubstr("3")) << "where the height is not known";
}

class WatchCommandTest : public CommandTest {
 protected:
  WatchCommandTest() {
    server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_QUEUED)};
    server_.script().events_hang = true;
  }

  // Something happens at the run; a watcher that is told looks again.
  void Change(v1::RunState state) {
    server_.Set([&](Script& script) {
      script.runs[0] = MakeRun(42, "train", state);
      script.event_stream.emplace_back().mutable_event()->set_revision(++revision_);
    });
    server_.CancelHanging();
  }

  int64_t revision_ = 100;
};

TEST_F(WatchCommandTest, OnAPipeEachChangeIsAppended) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"ls", "-w"}, {"status", "-w"}, {"show", "42", "-w"}}) {
    Change(v1::RUN_STATE_QUEUED);
    const auto tp = Start(command);
    tp->AwaitOut("QUEUED");
    server_.AwaitHanging();
    Change(v1::RUN_STATE_RUNNING);
    tp->AwaitOut("RUNNING");
    tp->Signal(SIGINT);
    const Finished finished = tp->Wait();
    EXPECT_EQ(finished.exit_code, 130);
    EXPECT_THAT(finished.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(finished.out, HasSubstr("\n\n"));
  }
}

TEST_F(WatchCommandTest, OnATerminalThePictureIsRepaintedAndStays) {
  options_.terminal_columns = 100;
  options_.environment["TERM"] = "xterm";
  const auto tp = Start({"ls", "-w", "--no-color"});
  tp->AwaitOut("QUEUED");
  server_.AwaitHanging();
  Change(v1::RUN_STATE_RUNNING);
  tp->AwaitOut("RUNNING");
  tp->Signal(SIGINT);
  const Finished finished = tp->Wait();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, StartsWith("\x1b[?1049h\x1b[?25l\x1b[HID "));
  EXPECT_THAT(finished.out, Not(HasSubstr("\x1b[2J"))) << "clearing first would flicker";
  const std::string left = finished.out.substr(finished.out.find("\x1b[?1049l"));
  EXPECT_THAT(left, HasSubstr("RUNNING")) << "the last picture stays on the screen";
}

TEST_F(WatchCommandTest, ShowEndsWithItsRuns) {
  const auto tp = Start({"show", "42", "-w"});
  tp->AwaitOut("QUEUED");
  server_.AwaitHanging();
  Change(v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(tp->Wait().exit_code, 0);
}

TEST_F(WatchCommandTest, JsonIsADocumentAChange) {
  const auto tp = Start({"show", "42", "-w", "-o", "json"});
  tp->AwaitOut("QUEUED");
  server_.AwaitHanging();
  Change(v1::RUN_STATE_SUCCEEDED);
  const Finished finished = tp->Wait();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("}\n{\n  \"schema_version\": 1"));
}

}  // namespace
}  // namespace tp::cli
