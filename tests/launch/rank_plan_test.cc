#include "launch/rank_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace tp::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::string_literals;

LaunchSpec Spec() {
  LaunchSpec spec;
  spec.key = "tp-lab-e1-7-s0-a1";
  spec.nonce = "n1";
  spec.paths = {"/s/ada/t-7/attempts/t-1", "/s/ada/t-7/attempts/t-1/work", "/s/ada/t-7/output", "/s/ada/t-7/results/t"};
  spec.argv = {"python3", "train.py", "--lr", ""};
  spec.log_max_bytes = 4096;
  spec.heartbeat_ms = 1000;
  for (int i = 0; i < 2; ++i) {
    RankLaunch rank;
    rank.rank = i;
    rank.placement.node = "n" + std::to_string(i);
    rank.env = {{"TP_NODE_RANK", std::to_string(i)}, {"API_KEY", "hunter2"}};
    spec.ranks.push_back(rank);
  }
  return spec;
}

void ExpectRefused(const LaunchSpec& spec, const std::string& words) {
  const absl::Status status = CheckSpec(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(words));
}

TEST(LaunchPlan, HasTheBytesOfTheContract) {
  LaunchSpec spec = Spec();
  spec.ranks.pop_back();
  const std::string payload =
      "R\0"
      "EAPI_KEY=hunter2\0"
      "EPATH=/bin\0"
      "ETP_NODE_RANK=0\0"
      "A--dir\0A/s/ada/t-7/attempts/t-1\0"
      "A--key\0Atp-lab-e1-7-s0-a1\0"
      "A--nonce\0An1\0"
      "A--pool\0A0\0"
      "A--rank\0A0\0"
      "A--workdir\0A/s/ada/t-7/attempts/t-1/work\0"
      "A--log-max-bytes\0A4096\0"
      "A--heartbeat-ms\0A1000\0"
      "A--cgroup\0A/cg/tp-lab-e1-7-s0-a1/0-0\0"
      "A--\0Apython3\0Atrain.py\0A--lr\0A\0"s;
  EXPECT_EQ(RenderPlan(spec, {.cgroup_parent = "/cg", .base_env = {{"PATH", "/bin"}}}),
            "tp-plan 1 1 " + std::to_string(payload.size()) + "\n" + payload);
}

TEST(LaunchPlan, TheSpecsOwnVariablesWin) {
  LaunchSpec spec = Spec();
  spec.ranks[0].env["PATH"] = "/opt/bin";
  EXPECT_THAT(RenderPlan(spec, {.cgroup_parent = "", .base_env = {{"PATH", "/bin"}}}), HasSubstr("EPATH=/opt/bin"s));
}

TEST(LaunchPlan, DescriptionMasksSecrets) {
  const std::string text = DescribePlan(Spec(), {});
  EXPECT_THAT(text, HasSubstr("rank 0-1 on n1"));
  EXPECT_THAT(text, HasSubstr("API_KEY=***"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(CheckSpec, AcceptsWhatCanRun) {
  EXPECT_TRUE(CheckSpec(Spec()).ok());
  LaunchSpec several = Spec();
  several.ranks[1].pool = 1;
  several.ranks[1].rank = 0;
  EXPECT_TRUE(CheckSpec(several).ok());
}

TEST(CheckSpec, NamesTheFieldThatCannot) {
  const auto with = [](auto change) {
    LaunchSpec spec = Spec();
    change(spec);
    return spec;
  };
  ExpectRefused(with([](LaunchSpec& spec) { spec.key = "a/../b"; }), "key");
  ExpectRefused(with([](LaunchSpec& spec) { spec.nonce = ""; }), "nonce");
  ExpectRefused(with([](LaunchSpec& spec) { spec.paths.attempt_dir = "relative"; }), "attempt_dir");
  ExpectRefused(with([](LaunchSpec& spec) { spec.paths.work_dir = "/a\nb"; }), "work_dir");
  ExpectRefused(with([](LaunchSpec& spec) { spec.heartbeat_ms = 0; }), "heartbeat_ms");
  ExpectRefused(with([](LaunchSpec& spec) { spec.log_max_bytes = 1; }), "log_max_bytes");
  ExpectRefused(with([](LaunchSpec& spec) { spec.argv = {}; }), "argv");
  ExpectRefused(with([](LaunchSpec& spec) { spec.argv = {""}; }), "argv");
  ExpectRefused(with([](LaunchSpec& spec) { spec.argv.push_back("a\0b"s); }), "argv[4]");
  ExpectRefused(with([](LaunchSpec& spec) { spec.argv.push_back(std::string(200'000, 'x')); }), "argv[4]");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[0].env["A=B"] = ""; }), "A=B");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[0].env[""] = ""; }), "env");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[1].env["A"] = "x\0y"s; }), "value of A");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[1].env["A"] = std::string(200'000, 'x'); }), "A has");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks.clear(); }), "ranks");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[1].rank = 0; }), "order");
  ExpectRefused(with([](LaunchSpec& spec) { spec.ranks[0].pool = 1; }), "order");
}

}  // namespace
}  // namespace tp::launch
