// Scenario files: what is wrong with them and where, and that the same one prints the same bytes.
#include "simulate/scenario.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/status.h"
#include "simulate/simulate.h"
#include "tests/launch/temp_dir.h"

namespace tp::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHardware[] =
    "registry:\n"
    "  series: {x: {gpus_per_node: 4, nodes: [n1, n2]}}\n"
    "  profiles: {x: {series: x}}\n";

class ScenarioTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // What is said about it, without the directory.
  std::string Problems(const std::string& text) const {
    const auto scenario = LoadScenario(Write("s.yaml", text));
    if (scenario.ok()) return "good";
    std::string said(Message(scenario.status()));
    for (size_t at; (at = said.find(directory_.path() + "/")) != std::string::npos;) {
      said.erase(at, directory_.path().size() + 1);
    }
    return said;
  }

  std::string Print(const std::string& text, Format format) const {
    const auto printed = Simulate(Write("s.yaml", text), format);
    return printed.ok() ? *printed : std::string(Message(printed.status()));
  }

  const testing::TempDir directory_;
};

TEST_F(ScenarioTest, EveryProblemHasItsPlaceAndAHint) {
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {jobs: []}\n"
                                              "polices: {}\n"
                                              "start: 2026-02-30\n"),
            "s.yaml:5:1: unknown key 'polices' in a scenario; did you mean policies?\n"
            "s.yaml:6:8: expected a day such as 2026-01-31, found '2026-02-30'");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {jobs: [{at: 0s, user: ann, profile: y:4, runs: 1h}]}\n"),
            "s.yaml:4:48: --profile y:4: there is no profile 'y'; did you mean x? there are cpu, x");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {jobs: []}\n"
                                              "policies:\n"
                                              "  one: {scheduling: {agin: 1h}, quotas: {gpu: 3}}\n"
                                              "  two: {scheduling: {stop_grace: 1h}}\n"),
            "s.yaml:6:22: unknown key 'agin' in scheduling; did you mean aging?\n"
            "s.yaml:6:42: unknown key 'gpu' in quotas; did you mean gpus?\n"
            "s.yaml:7:22: unknown key 'stop_grace' in scheduling; there are aging, aging_cap, default_time_limit, "
            "fair_share, fair_share_half_life, min_flip");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {jobs: []}\n"
                                              "policies:\n"
                                              "  one: {windows: {xx: []}, quotas: {series: {z: 1}}}\n"),
            "s.yaml:6:19: unknown series 'xx'; did you mean x?\n"
            "s.yaml:6:46: unknown series 'z'; did you mean x?");
}

TEST_F(ScenarioTest, SourcesAndHardwareBelongTogether) {
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {}\n"),
            "s.yaml:4:11: a workload has exactly one of jobs, generate, swf and gpu_trace; here are 0");
  EXPECT_EQ(Problems("workload: {jobs: []}\n"),
            "s.yaml:1:11: there is no registry: name the hardware that these jobs run on");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {gpu_trace: {nodes: a.csv, tasks: b.csv}}\n"),
            "s.yaml:2:3: the nodes of gpu_trace are the registry: leave this one out");
  EXPECT_EQ(Problems("registry: {series: {x: {gpus_per_node: 4}}}\nworkload: {jobs: []}\n"),
            "s.yaml:1:21: series x has no `nodes`: a simulation places jobs itself");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {swf: {path: gone.swf, profile: x}}\n"),
            "there is no file gone.swf");
  EXPECT_EQ(Problems(std::string(kHardware) + "workload: {swf: {path: gone.swf, profile: xy}}\n"),
            "s.yaml:4:43: unknown profile 'xy'; did you mean x?");
}

TEST_F(ScenarioTest, OtherFilesLieBesideTheScenario) {
  Write("registry.yaml",
        "series: {g: {gpus_per_node: 8, nodes: [n1], executor: gpu/site}}\nprofiles: {g: {series: g}}\n");
  Write("log.swf", "; UnixStartTime: 1136070024\n1 0 0 60 -1 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n");
  EXPECT_EQ(Problems("registry: registry.yaml\nworkload: {swf: {path: log.swf, profile: g}}\n"), "good");
  const auto scenario = LoadScenario(directory_.path() + "/s.yaml");
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(scenario->begins, absl::FromUnixSeconds(1136070024));
  ASSERT_EQ(scenario->cases.size(), 1u);
  EXPECT_EQ(scenario->cases[0].name, "default");
  Write("log.swf", "1 2 3\n");
  EXPECT_EQ(Problems("registry: registry.yaml\nworkload: {swf: {path: log.swf, profile: g}}\n"),
            "log.swf:1:1: 3 fields; a job has 18");
  Write("registry.yaml", "serie: {}\n");
  EXPECT_EQ(Problems("registry: registry.yaml\nworkload: {jobs: []}\n"),
            "registry.yaml:1:1: unknown key 'serie' in registry.yaml; did you mean series?");
}

std::string Generated(int seed) {
  return fmt::format(
      "seed: {}\n{}"
      "workload:\n"
      "  generate: {{jobs: 300, over: 2d, users: {{ann: 2, bob: 1}}, shapes: {{\"x:1\": 2, \"x:8\": 1}}, limited: "
      "50}}\n"
      "policies:\n"
      "  plain: {{}}\n"
      "  fair: {{scheduling: {{fair_share: true}}, user_quotas: {{ann: {{gpus: 4}}}}}}\n",
      seed, kHardware);
}

TEST_F(ScenarioTest, TheSameSeedPrintsTheSameBytes) {
  for (const Format format : {Format::kText, Format::kJson}) {
    const std::string printed = Print(Generated(7), format);
    EXPECT_EQ(printed, Print(Generated(7), format));
    EXPECT_NE(printed, Print(Generated(8), format));
  }
}

TEST_F(ScenarioTest, PoliciesStandBelowEachOther) {
  const std::string text = Print(Generated(7), Format::kText);
  EXPECT_THAT(text, StartsWith("300 jobs from 2026-01-01 00:00:00 on (UTC)\n"));
  for (const char* part : {"\nall   plain ", "\nall   fair ", "\nQUOTA_GPUS ", "\nx:8           plain "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(Print(Generated(7), Format::kJson),
              AllOf(HasSubstr("\"policy\": \"plain\""), HasSubstr("\"policy\": \"fair\""), HasSubstr("QUOTA_GPUS")));
}

}  // namespace
}  // namespace tp::simulate
