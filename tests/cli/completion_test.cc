// What the shells offer: first the words themselves, then the real shells with the real scripts.
#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CompletionTest : public CommandTest {
 protected:
  CompletionTest() {
    server_.script().runs = {MakeRun(43, "train", v1::RUN_STATE_RUNNING), MakeRun(42, "train", v1::RUN_STATE_FAILED),
                             MakeRun(41, "eval", v1::RUN_STATE_PAUSED)};
    for (const char* name : {"h200", "h200-small", "a100"}) server_.script().profiles.emplace_back().set_name(name);
    server_.script().results = {{"main/report.json", "{}"}};
    project_.Write("data/file", "");
    project_.Write("ca.pem", "");
    // A shell finds `tp` by its name.
    const std::string program = TP_PROGRAM;
    options_.environment["PATH"] = program.substr(0, program.rfind('/')) + ":/usr/bin:/bin";
    options_.environment["TERM"] = "dumb";
    options_.environment["LC_ALL"] = "C.UTF-8";
  }

  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end == std::string::npos ? text.size() : end + 1;
    }
    return lines;
  }

  // The values at the end of these words.
  std::vector<std::string> At(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    const Finished tp = Tp(words);
    EXPECT_EQ(tp.exit_code, 0);
    EXPECT_EQ(tp.err, "");
    std::vector<std::string> values = Lines(tp.out);
    for (std::string& value : values) value = value.substr(0, value.find('\t'));
    return values;
  }

  std::vector<std::string> Shell(const std::string& shell, const std::string& script) {
    Program program({shell, "-c", script}, options_);
    const Finished finished = program.Wait();
    EXPECT_EQ(finished.err, "") << script;
    return Lines(finished.out);
  }

  // What bash replaces the word at the cursor by. `words`: as bash splits the line.
  std::vector<std::string> Bash(const std::string& line, const std::string& begun) {
    return Shell("/bin/bash", "source <(tp completion bash); COMP_LINE='" + line + "'; COMP_POINT=${#COMP_LINE}; " +
                                  "COMP_WORDS=(x '" + begun +
                                  "'); COMP_CWORD=1; $(complete -p tp | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); "
                                  "printf '%s\\n' \"${COMPREPLY[@]}\"");
  }
  std::vector<std::string> Fish(const std::string& line) {
    return Shell("/usr/bin/fish", "tp completion fish | source; complete -C '" + line + "'");
  }
  // The list that a Tab shows in an interactive zsh.
  std::string Zsh(const std::string& line) {
    project_.Write(".zshrc",
                   "autoload -Uz compinit; compinit -u -D; source <(tp completion zsh); PS1='ready> '\n"
                   "LISTMAX=1000; setopt no_beep list_rows_first\n");
    options_.terminal_columns = 120;
    options_.environment["TERM"] = "xterm";
    Program zsh({"/usr/bin/zsh", "-i"}, options_);
    zsh.AwaitErr("ready> ");
    zsh.Type(line + "\t\t");
    zsh.AwaitErr(awaited_);
    zsh.Signal(9);
    const Finished finished = zsh.Wait();
    return finished.out + finished.err;
  }

  std::string awaited_;
};

TEST_F(CompletionTest, CommandsAndTheirCommands) {
  EXPECT_THAT(At({"st"}), ElementsAre("status", "stop"));
  EXPECT_THAT(At({"results", "g"}), ElementsAre("get"));
  EXPECT_THAT(At({"context", ""}), ElementsAre("ls", "use", "add", "rm"));
  EXPECT_THAT(At({""}), Contains("submit"));
  EXPECT_THAT(At({""}), Not(Contains("__complete")));
}

TEST_F(CompletionTest, Flags) {
  EXPECT_THAT(At({"ls", "--st"}), ElementsAre("--state"));
  EXPECT_THAT(At({"ls", "--s"}), Contains("--server")) << "global ones as well";
  EXPECT_THAT(At({"results", "get", "--t"}), ElementsAre("--to"));
}

TEST_F(CompletionTest, RunsWithWhichTheCommandCanDoSomething) {
  EXPECT_THAT(At({"show", ""}), ElementsAre("@last", "train-43", "train-42", "eval-41"));
  EXPECT_THAT(At({"stop", "tr"}), ElementsAre("train-43"));
  EXPECT_THAT(At({"resume", "e"}), ElementsAre("eval-41"));
  EXPECT_THAT(At({"rm", "t"}), ElementsAre("train-42"));
  EXPECT_THAT(At({"stop", "43", "e"}), ElementsAre("eval-41")) << "may be repeated";
  EXPECT_THAT(At({"logs", "43", "t"}), IsEmpty()) << "may not";
  EXPECT_THAT(At({"-o", "json", "logs", "e"}), ElementsAre("eval-41"));
  EXPECT_THAT(At({"usage", "--run", "e"}), ElementsAre("eval-41"));
}

TEST_F(CompletionTest, ValuesOfFlags) {
  EXPECT_THAT(At({"submit", "--profile", "h"}), ElementsAre("h200", "h200-small"));
  EXPECT_THAT(At({"submit", "--profile=a"}), ElementsAre("--profile=a100"));
  EXPECT_THAT(At({"ls", "--state", "S"}), ElementsAre("SUBMITTED", "SUCCEEDED", "STOPPED"));
  EXPECT_THAT(At({"ls", "-o", "j"}), ElementsAre("json"));
  EXPECT_THAT(At({"usage", "--by", "pro"}), ElementsAre("project", "profile"));
  EXPECT_THAT(At({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(At({"results", "get", "42", "m"}), ElementsAre("main/report.json"));
  EXPECT_THAT(At({"submit", "--dir", "x"}), ElementsAre(":directories"));
  EXPECT_THAT(At({"submit", "--", "python3", ""}), ElementsAre(":files"));
}

TEST_F(CompletionTest, WithoutAServerThereAreNoRunsAndNoError) {
  options_.environment["TP_SERVER"] = "unix:" + (project_ / "nobody.sock");
  EXPECT_THAT(At({"show", ""}), IsEmpty());
  EXPECT_THAT(At({"show", "--wa"}), ElementsAre("--watch"));
}

TEST_F(CompletionTest, HostileTextStaysInItsLine) {
  server_.script().runs[0].mutable_steps(0)->mutable_spec()->set_argv(0, "a\n\x1b[2J\tb");
  EXPECT_THAT(At({"stop", "t"}), ElementsAre("train-43"));
}

TEST_F(CompletionTest, InBash) {
  EXPECT_THAT(Bash("tp st", "st"), ElementsAre("status", "stop"));
  EXPECT_THAT(Bash("tp stop tr", "tr"), ElementsAre("train-43"));
  EXPECT_THAT(Bash("tp submit --profile h", "h"), ElementsAre("h200", "h200-small"));
  EXPECT_THAT(Bash("tp submit --profile=a", "a"), ElementsAre("a100")) << "bash keeps what stands before the =";
  EXPECT_THAT(Bash("tp ls --state ", ""), Contains("RUNNING"));
  EXPECT_THAT(Bash("tp submit --dir d", "d"), ElementsAre("data"));
  EXPECT_THAT(Bash("tp context add x --ca-file c", "c"), ElementsAre("ca.pem"));
}

TEST_F(CompletionTest, InFish) {
  EXPECT_THAT(Fish("tp st"), ElementsAre("status\tWhere you stand with quota and windows, and your runs of th…",
                                         "stop\tEnd runs for good; checkpoints and output stay"));
  EXPECT_THAT(Fish("tp stop tr"), ElementsAre("train-43\tRUNNING  python3 train.py"));
  EXPECT_THAT(Fish("tp submit --profile a"), ElementsAre(HasSubstr("a100")));
  EXPECT_THAT(Fish("tp submit --dir d"), ElementsAre(HasSubstr("data/")));
}

TEST_F(CompletionTest, InZsh) {
  awaited_ = "eval-41";
  EXPECT_THAT(Zsh("tp show "), HasSubstr("train-43"));
  awaited_ = "train-43";
  EXPECT_THAT(Zsh("tp stop tr"), HasSubstr("tp stop train-43"));
  awaited_ = "h200-small";
  EXPECT_THAT(Zsh("tp submit --profile h"), HasSubstr("h200-small"));
}

}  // namespace
}  // namespace tp::cli
