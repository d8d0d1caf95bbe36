#include "core/launch_plan.h"

#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/utf8.h"
#include "core/json_text.h"

namespace tp::core {
namespace {

using ::testing::HasSubstr;
using Env = std::map<std::string, std::string>;

const LaunchLayout kLayout{.storage_root = "/srv/runs", .log_max_bytes = 1 << 20, .heartbeat_ms = 5000};

Run MakeRun() {
  Run run;
  run.n = 42;
  run.slug = "grpo";
  run.owner = "ada";
  run.snapshot_id = "abc123";
  return run;
}

PoolShape MakeShape(std::vector<std::string> roles, const std::string& series, int64_t nodes, int gpus_per_node) {
  PoolShape shape;
  shape.roles = std::move(roles);
  shape.series = series;
  shape.profile = series;
  shape.nodes = nodes;
  shape.gpus_per_node = gpus_per_node;
  return shape;
}

PoolPlacement MakePlacement(const PoolShape& shape, int port, std::vector<RankPlacement> ranks) {
  PoolPlacement placement;
  placement.series = shape.series;
  placement.profile = shape.profile;
  placement.roles = shape.roles;
  placement.gpus_per_node = shape.gpus_per_node;
  placement.master_port = port;
  placement.ranks = std::move(ranks);
  return placement;
}

Step MakeStep(std::vector<PoolShape> shapes, std::vector<PoolPlacement> placement) {
  Step step;
  step.ref = {42, 0};
  step.spec.name = "train";
  step.spec.argv = {"python3", "train.py"};
  step.spec.image = "img:1";
  step.retry_count = 1;
  step.attempt.emplace();
  step.attempt->number = 3;
  step.attempt->key = "tp-x-e1-42-s0-a3";
  step.attempt->nonce = "00ff";
  step.attempt->shape.executor = "gpu/default";
  step.attempt->shape.pools = std::move(shapes);
  step.attempt->placement = std::move(placement);
  return step;
}

Step OnePool() {
  const PoolShape shape = MakeShape({}, "h200", 2, 8);
  const std::vector<int> cards = {0, 1, 2, 3, 4, 5, 6, 7};
  return MakeStep({shape},
                  {MakePlacement(shape, 29500, {{"node-1", "10.0.0.1", cards}, {"node-2", "10.0.0.2", cards}})});
}

Step TwoPools() {
  PoolShape train = MakeShape({"train", "ref"}, "h200", 2, 2);
  train.env = {{"NCCL_DEBUG", "WARN"}};
  train.overrides_json = {{"megatron", R"({"tp":1})"}, {"vllm", R"({"mem":0.9})"}};
  train.overrides_env = {{"TP_OVERRIDES_MEGATRON", "tp=1"}, {"TP_OVERRIDES_VLLM", "--mem=0.9"}};
  PoolShape rollout = MakeShape({"rollout"}, "a100", 1, 2);
  rollout.overrides_json = {{"vllm", R"({"mem":0.5})"}};
  rollout.overrides_env = {{"TP_OVERRIDES_VLLM", "--mem=0.5"}};
  Step step = MakeStep({train, rollout},
                       {MakePlacement(train, 29500, {{"node-1", "10.0.0.1", {0, 1}}, {"node-2", "10.0.0.2", {4, 6}}}),
                        MakePlacement(rollout, 29501, {{"node-9", "fd00::9", {2, 3}}})});
  step.spec.env = {{"SEED", "1"}, {"NCCL_DEBUG", "INFO"}};
  step.spec.explicit_env = {{"SEED", "7"}};
  return step;
}

std::string Lines(const Env& env) {
  std::string out;
  for (const auto& [name, value] : env) out += name + "=" + value + "\n";
  return out;
}

// --- The environment contract, whole ---------------------------------------------------------------

constexpr char kPools[] =
    R"([{"index":0,"name":"train","roles":["train","ref"],"series":"h200","profile":"h200","nodes":2,"gpus_per_node":2,)"
    R"("hosts":["10.0.0.1","10.0.0.2"],"master_port":29500},)"
    R"({"index":1,"name":"rollout","roles":["rollout"],"series":"a100","profile":"a100","nodes":1,"gpus_per_node":2,)"
    R"("hosts":["fd00::9"],"master_port":29501}])";

TEST(PlanLaunch, EnvironmentOfTheFirstPoolsSecondRank) {
  const auto spec = PlanLaunch(kLayout, MakeRun(), TwoPools());
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->ranks.size(), 3u);
  EXPECT_EQ(Lines(spec->ranks[1].env), std::string(R"(CUDA_DEVICE_ORDER=PCI_BUS_ID
CUDA_VISIBLE_DEVICES=4,6
MASTER_ADDR=10.0.0.1
MASTER_PORT=29500
NCCL_DEBUG=WARN
PET_MASTER_ADDR=10.0.0.1
PET_MASTER_PORT=29500
PET_NNODES=2
PET_NODE_RANK=1
PET_NPROC_PER_NODE=2
SEED=7
TP_ATTEMPT=3
TP_GPUS_PER_NODE=2
TP_HEAD_ADDR=10.0.0.1
TP_METRICS_FILE=/srv/runs/ada/grpo-42/attempts/train-3/metrics.jsonl
TP_NNODES=2
TP_NODE_RANK=1
TP_OUTPUT_DIR=/srv/runs/ada/grpo-42/output
TP_OVERRIDES_FILE=/srv/runs/ada/grpo-42/attempts/train-3/overrides.json
TP_OVERRIDES_MEGATRON=tp=1
TP_OVERRIDES_VLLM=--mem=0.9
TP_PAUSE_FILE=/srv/runs/ada/grpo-42/attempts/train-3/pause
TP_POOL=train
TP_POOLS=)") + kPools + R"(
TP_POOL_INDEX=0
TP_RESULTS_DIR=/srv/runs/ada/grpo-42/results/train
TP_RETRY_COUNT=1
TP_ROLES=train,ref
TP_RUN_ID=grpo-42
TP_STEP=train
TP_USER=ada
TP_WORK_DIR=/srv/runs/ada/grpo-42/attempts/train-3/work
TP_WORLD_SIZE=4
)");
}

TEST(PlanLaunch, EnvironmentOfTheSecondPool) {
  const auto spec = PlanLaunch(kLayout, MakeRun(), TwoPools());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->ranks[2].pool, 1);
  EXPECT_EQ(spec->ranks[2].rank, 0);
  EXPECT_EQ(Lines(spec->ranks[2].env), std::string(R"(CUDA_DEVICE_ORDER=PCI_BUS_ID
CUDA_VISIBLE_DEVICES=2,3
MASTER_ADDR=10.0.0.1
MASTER_PORT=29500
NCCL_DEBUG=INFO
PET_MASTER_ADDR=fd00::9
PET_MASTER_PORT=29501
PET_NNODES=1
PET_NODE_RANK=0
PET_NPROC_PER_NODE=2
SEED=7
TP_ATTEMPT=3
TP_GPUS_PER_NODE=2
TP_HEAD_ADDR=10.0.0.1
TP_METRICS_FILE=/srv/runs/ada/grpo-42/attempts/train-3/metrics.jsonl
TP_NNODES=1
TP_NODE_RANK=0
TP_OUTPUT_DIR=/srv/runs/ada/grpo-42/output
TP_OVERRIDES_FILE=/srv/runs/ada/grpo-42/attempts/train-3/overrides-1.json
TP_OVERRIDES_VLLM=--mem=0.5
TP_PAUSE_FILE=/srv/runs/ada/grpo-42/attempts/train-3/pause
TP_POOL=rollout
TP_POOLS=)") + kPools + R"(
TP_POOL_INDEX=1
TP_RESULTS_DIR=/srv/runs/ada/grpo-42/results/train
TP_RETRY_COUNT=1
TP_ROLES=rollout
TP_RUN_ID=grpo-42
TP_STEP=train
TP_USER=ada
TP_WORK_DIR=/srv/runs/ada/grpo-42/attempts/train-3/work
TP_WORLD_SIZE=2
)");
}

TEST(PlanLaunch, TheSpecCarriesTheAttempt) {
  const auto spec = PlanLaunch(kLayout, MakeRun(), TwoPools());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->key, "tp-x-e1-42-s0-a3");
  EXPECT_EQ(spec->nonce, "00ff");
  EXPECT_EQ(spec->owner, "ada");
  EXPECT_EQ(spec->run_id, "grpo-42");
  EXPECT_EQ(spec->step_name, "train");
  EXPECT_EQ(spec->attempt, 3);
  EXPECT_EQ(spec->executor, "gpu/default");
  EXPECT_EQ(spec->image, "img:1");
  EXPECT_EQ(spec->snapshot_id, "abc123");
  EXPECT_EQ(spec->argv, (std::vector<std::string>{"python3", "train.py"}));
  EXPECT_EQ(spec->log_max_bytes, 1 << 20);
  EXPECT_EQ(spec->heartbeat_ms, 5000);
  EXPECT_EQ(spec->overrides_json,
            (std::vector<std::string>{R"({"megatron":{"tp":1},"vllm":{"mem":0.9}})", R"({"vllm":{"mem":0.5}})"}));
  EXPECT_EQ(*PlanLaunch(kLayout, MakeRun(), TwoPools()), *spec);
}

TEST(PlanLaunch, OnePoolWithoutRolesIsNamedByItsProfile) {
  const auto spec = PlanLaunch(kLayout, MakeRun(), OnePool());
  ASSERT_TRUE(spec.ok());
  const Env& env = spec->ranks[1].env;
  EXPECT_EQ(env.at("TP_POOL"), "h200");
  EXPECT_EQ(env.at("TP_ROLES"), "");
  EXPECT_EQ(env.at("TP_WORLD_SIZE"), "16");
  EXPECT_EQ(env.at("PET_NPROC_PER_NODE"), "8");
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "0,1,2,3,4,5,6,7");
  EXPECT_EQ(spec->overrides_json, std::vector<std::string>{"{}"});
}

TEST(PlanLaunch, CpuRanksCountAsTheWorldAndSeeNoCards) {
  const PoolShape shape = MakeShape({}, "cpu", 3, 0);
  const auto spec = PlanLaunch(
      kLayout, MakeRun(),
      MakeStep({shape},
               {MakePlacement(shape, 29500,
                              {{"l-1", "127.0.0.1", {}}, {"l-2", "127.0.0.1", {}}, {"l-3", "127.0.0.1", {}}})}));
  ASSERT_TRUE(spec.ok());
  const Env& env = spec->ranks[2].env;
  EXPECT_EQ(env.at("TP_WORLD_SIZE"), "3");
  EXPECT_EQ(env.at("TP_GPUS_PER_NODE"), "0");
  EXPECT_EQ(env.at("PET_NPROC_PER_NODE"), "1");
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "");
}

// What the engine chooses is not claimed to be known.
TEST(PlanLaunch, WithoutNodesThereAreNoAddressesOrCards) {
  const PoolShape shape = MakeShape({}, "h200", 2, 8);
  const auto spec = PlanLaunch(kLayout, MakeRun(), MakeStep({shape}, {MakePlacement(shape, 0, {{}, {}})}));
  ASSERT_TRUE(spec.ok());
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT", "TP_HEAD_ADDR"}) {
    EXPECT_FALSE(spec->ranks[1].env.contains(name)) << name;
  }
  EXPECT_EQ(spec->ranks[1].env.at("PET_NODE_RANK"), "1");
  EXPECT_THAT(spec->ranks[1].env.at("TP_POOLS"), Not(HasSubstr("hosts")));
}

TEST(PlanLaunch, AUserMaySetLauncherVariablesButNoneOfTps) {
  Step step = OnePool();
  step.spec.explicit_env = {{"PET_NPROC_PER_NODE", "1"}, {"PET_TEE", "1"}};
  const auto spec = PlanLaunch(kLayout, MakeRun(), step);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->ranks[0].env.at("PET_NPROC_PER_NODE"), "1");
  EXPECT_EQ(spec->ranks[0].env.at("PET_TEE"), "1");
  step.spec.explicit_env = {{"TP_RUN_ID", "forged-1"}};
  EXPECT_THAT(std::string(Message(PlanLaunch(kLayout, MakeRun(), step).status())), HasSubstr("belong to tp"));
}

// --- Values that do not fit together ----------------------------------------------------------------

void ExpectFault(const Run& run, const Step& step, const std::string& sentence, const LaunchLayout& layout = kLayout) {
  const absl::Status status = PlanLaunch(layout, run, step).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), HasSubstr(sentence));
}

TEST(PlanLaunch, FaultsAreNamed) {
  Step step = OnePool();
  step.attempt.reset();
  ExpectFault(MakeRun(), step, "step 'train' has no attempt");
  step = OnePool();
  step.attempt->placement.clear();
  ExpectFault(MakeRun(), step, "the shape has 1 pools, the placement 0");
  step = OnePool();
  step.attempt->placement[0].ranks.pop_back();
  ExpectFault(MakeRun(), step, "pool 0: the placement does not fit the shape");
  step = OnePool();
  step.attempt->placement[0].ranks[1].cards.pop_back();
  ExpectFault(MakeRun(), step, "pool 0: node 'node-2' gives 7 cards, the shape needs 8");
  step = OnePool();
  step.attempt->placement[0].series = "a100";
  ExpectFault(MakeRun(), step, "does not fit the shape");
  step = MakeStep({}, {});
  ExpectFault(MakeRun(), step, "the shape has no pool");
  const PoolShape nothing = MakeShape({}, "h200", 0, 8);
  ExpectFault(MakeRun(), MakeStep({nothing}, {MakePlacement(nothing, 1, {})}), "pool 0: the shape has 0 nodes");
  ExpectFault(MakeRun(), OnePool(), "storage.root 'runs' is not an absolute path", {.storage_root = "runs"});
}

TEST(PlanLaunch, TooManyHostsForOneVariableAreRefused) {
  const PoolShape shape = MakeShape({}, "h200", 9000, 8);
  std::vector<RankPlacement> ranks(9000, RankPlacement{"", "node-with-a-long-name", {}});
  ExpectFault(MakeRun(), MakeStep({shape}, {MakePlacement(shape, 1, ranks)}), "TP_POOLS comes to");
}

// --- Paths ------------------------------------------------------------------------------------------

TEST(PathsOf, AreThoseOfTheContract) {
  const AttemptPaths paths = PathsOf(kLayout, MakeRun(), OnePool(), 7);
  EXPECT_EQ(paths.attempt_dir, "/srv/runs/ada/grpo-42/attempts/train-7");
  EXPECT_EQ(paths.work_dir, "/srv/runs/ada/grpo-42/attempts/train-7/work");
  EXPECT_EQ(paths.output_dir, "/srv/runs/ada/grpo-42/output");
  EXPECT_EQ(paths.results_dir, "/srv/runs/ada/grpo-42/results/train");
}

// The components of a path below the storage root; empty where it is not below it.
std::vector<std::string> Below(const std::string& path) {
  const std::string root = kLayout.storage_root + "/";
  if (path.substr(0, root.size()) != root) return {};
  std::istringstream rest(path.substr(root.size()));
  std::vector<std::string> components;
  for (std::string component; std::getline(rest, component, '/');) components.push_back(component);
  return components;
}

void ExpectInside(const std::string& path, size_t depth) {
  const std::vector<std::string> components = Below(path);
  EXPECT_EQ(components.size(), depth) << path;
  for (const std::string& component : components) {
    EXPECT_FALSE(component.empty() || component[0] == '.') << path;
    EXPECT_EQ(component.find('\0'), std::string::npos);
  }
}

TEST(PathsOf, HostileNamesStayBelowTheRootAndApart) {
  std::mt19937 random(7);
  const std::string alphabet("./\\~%-a\0\n\xff*", 11);
  std::set<std::string> names = {"", ".", "..", "../..", "/etc", "a/../../b", "%", "%2E", "~root", ".hidden"};
  while (names.size() < 3000) {
    std::string name;
    for (size_t i = 1 + random() % 6; i > 0; --i) name += alphabet[random() % alphabet.size()];
    names.insert(name);
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    core::Run run = MakeRun();
    run.owner = name;
    Step step = OnePool();
    step.spec.name = name;
    const AttemptPaths paths = PathsOf(kLayout, run, step, 1);
    ExpectInside(paths.attempt_dir, 4);
    ExpectInside(paths.work_dir, 5);
    ExpectInside(paths.output_dir, 3);
    ExpectInside(paths.results_dir, 4);
    EXPECT_TRUE(seen.insert(paths.output_dir).second) << "two owners share " << paths.output_dir;
  }
}

TEST(PlanLaunch, RefusesNamesThatHadToBeRewritten) {
  for (const std::string bad : {"", ".", "..", "a/b", "../ada", "a b", "-\n", ".ssh"}) {
    core::Run run = MakeRun();
    run.owner = bad;
    ExpectFault(run, OnePool(), "owner");
    Step step = OnePool();
    step.spec.name = bad;
    ExpectFault(MakeRun(), step, "step name");
    run = MakeRun();
    run.slug = "../" + bad;
    ExpectFault(run, OnePool(), "run id");
  }
  core::Run run = MakeRun();
  run.owner = std::string(129, 'a');
  ExpectFault(run, OnePool(), "owner");
  run.owner = "ada.lovelace+ml@example.org";
  EXPECT_TRUE(PlanLaunch(kLayout, run, OnePool()).ok());
}

// --- JSON -------------------------------------------------------------------------------------------

TEST(JsonString, EscapesWhatJsonDemands) {
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(JsonString(std::string("\0\n\t\x1f\x7f", 5)), R"("\u0000\u000a\u0009\u001f\u007f")");
  EXPECT_EQ(JsonString("gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x80"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x80\"");
}

TEST(JsonString, ReplacesBytesThatAreNotUtf8) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(JsonString("\xff"), "\"" + replaced + "\"");
  EXPECT_EQ(JsonString("a\xc3"), "\"a" + replaced + "\"");
  EXPECT_EQ(JsonString("\xc0\xaf"), "\"" + replaced + replaced + "\"");                 // overlong
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"" + replaced + replaced + replaced + "\"");  // surrogate
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80"), "\"" + replaced + replaced + replaced + replaced + "\"");
}

TEST(JsonString, IsUtf8WithoutControlsWhateverComesIn) {
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += static_cast<char>(random() & 0xFFu);
    const std::string json = JsonString(text);
    ASSERT_FALSE(FirstInvalidUtf8(json).has_value());
    for (const char c : json) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

}  // namespace
}  // namespace tp::core
