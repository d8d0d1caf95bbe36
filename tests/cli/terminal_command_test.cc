#include <sstream>

#include "cli/render/text.h"
#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Le;
using testing::Not;

class TerminalCommandTest : public CommandTest {
 protected:
  TerminalCommandTest() {
    UseUtf8Locale();
    v1::Run run = MakeRun(42, "train", v1::RUN_STATE_RUNNING);
    run.set_reason("訓練 " + std::string(300, 'r'));
    server_.script().runs = {run};
    options_.terminal_columns = 100;
    options_.environment["TERM"] = "xterm";
  }

  static std::vector<int> Widths(const std::string& text) {
    std::vector<int> widths;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) widths.push_back(DisplayWidth(line));
    return widths;
  }
};

TEST_F(TerminalCommandTest, TablesFitTheWidth) {
  for (const int columns : {100, 80}) {
    options_.terminal_columns = columns;
    EXPECT_THAT(Widths(Tp({"ls", "--no-color"}).out), Each(Le(columns)));
  }
  EXPECT_THAT(Tp({"ls", "--no-color"}).out, HasSubstr("…"));
}

TEST_F(TerminalCommandTest, ColoursOnATerminal) { EXPECT_THAT(Tp({"ls"}).out, HasSubstr("\x1b[34mRUNNING\x1b[0m")); }

TEST_F(TerminalCommandTest, NoColourWhereItIsNotWanted) {
  EXPECT_THAT(Tp({"ls", "--no-color"}).out, Not(HasSubstr("\x1b")));
  options_.environment["NO_COLOR"] = "1";
  EXPECT_THAT(Tp({"ls"}).out, Not(HasSubstr("\x1b")));
  options_.environment.erase("NO_COLOR");
  options_.environment["TERM"] = "dumb";
  EXPECT_THAT(Tp({"ls"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(TerminalCommandTest, PipesGetEverythingAndNoColours) {
  options_.terminal_columns = 0;
  const Finished tp = Tp({"ls"});
  EXPECT_THAT(tp.out, HasSubstr(std::string(300, 'r')));
  EXPECT_THAT(tp.out, Not(HasSubstr("\x1b")));
}

TEST_F(TerminalCommandTest, ShowFitsToo) {
  v1::Attempt& attempt = *server_.script().runs[0].mutable_steps(0)->mutable_attempt();
  attempt.set_number(1);
  for (int i = 0; i < 40; ++i) attempt.add_nodes("node-" + std::to_string(i));
  const std::string page = Tp({"show", "42", "--no-color"}).out;
  EXPECT_THAT(Widths(page.substr(page.find("ATTEMPT"))), Each(Le(100)));
}

}  // namespace
}  // namespace tp::cli
