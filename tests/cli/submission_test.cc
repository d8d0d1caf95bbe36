#include "cli/submission.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace tp::cli {
namespace {

std::string NameOf(const std::vector<std::string>& argv) { return DefaultName(argv, "/srv/alice/my project/"); }

TEST(DefaultNameTest, IsWhatTheCommandRuns) {
  EXPECT_EQ(NameOf({"python3", "train.py"}), "train");
  EXPECT_EQ(NameOf({"/usr/bin/python3.11", "-u", "src/train.py", "--lr", "3"}), "train");
  EXPECT_EQ(NameOf({"torchrun", "--nproc_per_node", "8", "finetune.py"}), "finetune");
  EXPECT_EQ(NameOf({"python", "-m", "pkg.pretrain", "x"}), "pretrain");
  EXPECT_EQ(NameOf({"env", "A=b", "bash", "run.sh"}), "run");
  EXPECT_EQ(NameOf({"uv", "run", "eval.py"}), "eval");
  EXPECT_EQ(NameOf({"./prog", "input.py"}), "prog");
  EXPECT_EQ(NameOf({"sleep", "60"}), "sleep");
}

TEST(DefaultNameTest, ElseTheDirectory) {
  EXPECT_EQ(NameOf({"bash", "-c", "echo hello"}), "my project");
  EXPECT_EQ(NameOf({"python3"}), "my project");
}

std::string ErrorOf(const SubmitFlags& flags, const std::vector<std::string>& argv = {"true"}) {
  return std::string(Message(BuildSubmission(flags, argv).status()));
}

TEST(BuildSubmissionTest, FillsTheRequest) {
  SubmitFlags flags;
  flags.profiles = {"h200:16"};
  flags.environment = {"A=b=c", "EMPTY="};
  flags.labels = {"team=vision"};
  flags.time_limit = "2h";
  flags.project = "p";
  const auto request = BuildSubmission(flags, {"python3", "train.py", "[1,2]"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name(), "train");
  EXPECT_EQ(request->labels().at("team"), "vision");
  const v1::StepSpec& step = request->steps(0);
  EXPECT_EQ(step.argv(2), "[1,2]");
  EXPECT_EQ(step.profiles(0), "h200:16");
  EXPECT_EQ(step.explicit_env().at("A"), "b=c");
  EXPECT_EQ(step.explicit_env().at("EMPTY"), "");
  EXPECT_EQ(step.time_limit().seconds(), 7200);
}

TEST(BuildSubmissionTest, PassesOnesOwnVariableOn) {
  ASSERT_EQ(::setenv("TP_CLI_TEST_OWN", "mine", 1), 0);
  SubmitFlags flags;
  flags.environment = {"TP_CLI_TEST_OWN"};
  EXPECT_EQ(BuildSubmission(flags, {"true"})->steps(0).explicit_env().at("TP_CLI_TEST_OWN"), "mine");
}

TEST(BuildSubmissionTest, NamesTheFlagAtFault) {
  EXPECT_EQ(ErrorOf({}, {}), "no command: write it behind --, as in: tp submit --profile h200:8 -- python3 train.py");
  SubmitFlags flags;
  flags.environment = {"TP_CLI_TEST_UNSET"};
  EXPECT_EQ(ErrorOf(flags), "--env TP_CLI_TEST_UNSET: not set here; write TP_CLI_TEST_UNSET=value");
  flags.environment = {"1A=b"};
  EXPECT_NE(ErrorOf(flags).find("--env 1A: "), std::string::npos);
  flags = {};
  flags.time_limit = "90";
  EXPECT_NE(ErrorOf(flags).find("--time-limit 90: "), std::string::npos);
  flags = {};
  flags.labels = {"novalue"};
  EXPECT_EQ(ErrorOf(flags), "--label novalue: write key=value");
  EXPECT_EQ(ErrorOf({}, {"prog", "\xff"}), "argument \\xff: not UTF-8");
}

TEST(BuildSubmissionTest, NeverRepeatsAValueThatMayBeASecret) {
  SubmitFlags flags;
  flags.environment = {"HF_TOKEN=hunter2\xff"};
  EXPECT_EQ(ErrorOf(flags), "--env HF_TOKEN: its value is not UTF-8");
  flags.environment = {"not a name=hunter2"};
  EXPECT_EQ(ErrorOf(flags).find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace tp::cli
