#include "cli/project_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "cli/project_submission.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

using ::testing::ElementsAre;

constexpr char kAllKeys[] = R"(name: charlm
image: registry.example.org/charlm:1
command: python3 train.py --epochs 3
profile: h200:16
env: {LR: 3e-4, TOKENIZERS_PARALLELISM: false}
labels: {team: nlp}
steps:
  export:
    command: [python3, export.py, --fp16, 1]
    profile: [cpu]
    image: other
    env: {A: b}
  clean:
    command: rm -rf scratch
    after: {step: export, when: always}
notify:
  - {to: team@example.org, on: [failed, succeeded]}
  - {to: chat, on: [paused, stopped]}
)";

TEST(ProjectFile, EveryKeyIsRead) {
  const auto project = ParseProjectFile("tp.yaml", kAllKeys);
  ASSERT_TRUE(project.ok()) << project.status();
  EXPECT_EQ(project->name, "charlm");
  EXPECT_THAT(project->command, ElementsAre("sh", "-c", "python3 train.py --epochs 3"));
  EXPECT_THAT(project->profiles, ElementsAre("h200:16"));
  ASSERT_EQ(project->env.size(), 2u);
  EXPECT_EQ(project->env[0].value, "3e-4") << "as it is written";
  EXPECT_EQ(project->env[1].value, "false");
  ASSERT_EQ(project->steps.size(), 2u);
  EXPECT_THAT(project->steps[0].value.command, ElementsAre("python3", "export.py", "--fp16", "1"));
  EXPECT_EQ(project->steps[1].value.after->step.value, "export");
  EXPECT_EQ(project->steps[1].value.after->when, ProjectAfter::When::kAlways);
  v1::SubmitRunRequest request;
  AddNotices(*project, request);
  ASSERT_EQ(request.notify_size(), 2);
  EXPECT_EQ(request.notify(0).to(), "team@example.org");
  EXPECT_THAT(request.notify(0).on(), ElementsAre(v1::NOTICE_EVENT_FAILED, v1::NOTICE_EVENT_SUCCEEDED));
  EXPECT_EQ(request.notify(1).to(), "chat");
  EXPECT_THAT(request.notify(1).on(), ElementsAre(v1::NOTICE_EVENT_PAUSED, v1::NOTICE_EVENT_STOPPED));
}

TEST(ProjectFile, AnEmptyOneLeavesAllOpen) {
  const auto project = ParseProjectFile("tp.yaml", "# nothing yet\n");
  ASSERT_TRUE(project.ok()) << project.status();
  EXPECT_EQ(WithProject(*project, {}).name, "");
}

TEST(ProjectFile, FlagsWinAndLabelsAddUp) {
  const auto project = ParseProjectFile("tp.yaml", kAllKeys);
  ASSERT_TRUE(project.ok());
  SubmitFlags flags;
  flags.profiles = {"a100"};
  flags.labels = {"team=vision", "run=1"};
  const auto request = BuildSubmission(WithProject(*project, flags), {"true"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name(), "charlm");
  EXPECT_EQ(request->steps(0).image(), "registry.example.org/charlm:1");
  EXPECT_THAT(request->steps(0).profiles(), ElementsAre("a100"));
  EXPECT_EQ(request->labels().at("team"), "vision");
  EXPECT_EQ(request->labels().at("run"), "1");
}

TEST(ProjectFile, ItsEnvironmentIsTheLowestLayer) {
  const auto project = ParseProjectFile("tp.yaml", kAllKeys);
  ASSERT_TRUE(project.ok());
  SubmitFlags flags;
  flags.environment = {"LR=1"};
  auto request = BuildSubmission(flags, {"true"});
  ASSERT_TRUE(request.ok());
  AddProjectEnv(*project, *request);
  EXPECT_EQ(request->steps(0).env().at("LR"), "3e-4");
  EXPECT_EQ(request->steps(0).explicit_env().at("LR"), "1");
}

struct Mistake {
  const char* text;
  const char* said;
};

TEST(ProjectFile, MistakesAreSaidWithTheirPlace) {
  const std::vector<Mistake> mistakes = {
      {"nmae: a\n", "tp.yaml:1:1: unknown key 'nmae' in tp.yaml; did you mean name?"},
      {"name: 7\n", "tp.yaml:1:7: expected text, found the number 7; if it is meant as text, put it in quotes"},
      {"command: {a: b}\n", "tp.yaml:1:10: expected a line for sh -c, or a list of words, found a mapping"},
      {"env:\n  1A: b\n", "tp.yaml:2:3: '1A' is not a variable's name: write letters, digits and _, no digit first"},
      {"env:\n  TP_RUN_ID: b\n", "tp.yaml:2:3: TP_RUN_ID: names that begin with TP_ belong to tp"},
      {"labels: {a: true}\n",
       "tp.yaml:1:13: expected text, found the boolean true; if it is meant as text, put it in quotes"},
      {"steps:\n  export: {image: a}\n", "tp.yaml:2:11: a step needs the key 'command'"},
      {"steps:\n  main: {command: a}\n", "tp.yaml:2:3: step main is the command itself; give this one another name"},
      {"steps:\n  export: {command: []}\n", "tp.yaml:2:3: step export has an empty command"},
      {"steps:\n  a: {command: a, after: {step: b}}\n  b: {command: b}\n",
       "tp.yaml:2:33: unknown step 'b' in what comes before; there is only main"},
      {"steps:\n  a: {command: a, after: {when: succes}}\n",
       "tp.yaml:2:33: expected one of success, failure, always (did you mean success?), found 'succes'"},
      {"notify: [{to: 'https://a', on: [failed]}]\n",
       "tp.yaml:1:15: 'https://a': addresses are for admins to set up; name one of their receivers, or a mail address"},
      {"notify: [{to: bob, on: [faled]}]\n",
       "tp.yaml:1:25: expected one of succeeded, failed, stopped, paused, idle (did you mean failed?), found 'faled'"},
      {"notify: [{to: bob@example.org}]\n", "tp.yaml:1:10: a notice needs the key 'on'"},
      {"name: [\n", "tp.yaml:2:1: a '[' is never closed"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto project = ParseProjectFile("tp.yaml", mistake.text);
    EXPECT_EQ(project.status().code(), absl::StatusCode::kInvalidArgument) << mistake.text;
    EXPECT_EQ(Message(project.status()), mistake.said);
  }
}

TEST(ProjectFile, ADirectoryWithoutOneHasNone) {
  const TempDir directory;
  const auto none = ReadProjectFile(directory.path());
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
  directory.Write("tp.yaml", "name: a\n");
  const auto found = ReadProjectFile(directory.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->name, "a");
}

}  // namespace
}  // namespace tp::cli
