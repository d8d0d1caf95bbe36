#include "core/resource.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/near_miss.h"
#include "base/printable.h"
#include "base/status.h"
#include "sample_registry.h"

namespace tp::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Flags = std::vector<std::string>;

std::string Resolved(const Flags& flags) {
  const absl::StatusOr<ResolvedShape> shape = ResolveShape(SampleRegistry(), flags);
  if (!shape.ok()) return "refused: " + std::string(Message(shape.status()));
  return DescribeShape(*shape);
}

// Test names that say nothing of the parameter's bytes.
template <typename Param>
std::string CaseName(const testing::TestParamInfo<Param>& info) {
  return fmt::format("case{}", info.index);
}

absl::Status Refusal(const Flags& flags) { return ResolveShape(SampleRegistry(), flags).status(); }

// --- What is asked of nodes -------------------------------------------------------------------------

TEST(NodeDemand, IsTheSeriesSharesTimesTheCardsOfANode) {
  Registry registry = SampleRegistry();
  Series& series = registry.series.at("h200");
  series.per_card = {.cpus = 12, .memory_bytes = 100, .shm_bytes = std::nullopt, .memlock_bytes = kUnlimited};
  series.constraint = "h200";
  const absl::StatusOr<ResolvedShape> shape = ResolveShape(registry, {"h200:4"});
  ASSERT_TRUE(shape.ok()) << shape.status();
  const NodeDemand& demand = shape->pools[0].demand;
  EXPECT_EQ(demand.limits,
            (RankLimits{.cpus = 48, .memory_bytes = 400, .shm_bytes = std::nullopt, .memlock_bytes = kUnlimited}));
  EXPECT_EQ(demand.constraint, "h200");
}

// --- What resolves --------------------------------------------------------------------------------

struct Good {
  Flags flags;
  std::string shape;
};

class ResolvesTo : public testing::TestWithParam<Good> {};

TEST_P(ResolvesTo, Shape) { EXPECT_EQ(Resolved(GetParam().flags), GetParam().shape); }

INSTANTIATE_TEST_SUITE_P(
    ResourceFlag, ResolvesTo,
    testing::Values(
        Good{{}, "cpu:1 = 1 node"},  //
        Good{{"cpu"}, "cpu:1 = 1 node"}, Good{{"cpu:4"}, "cpu:4 = 4 nodes"}, Good{{"h200"}, "h200:8 = 1 node x 8"},
        Good{{"h200:1"}, "h200:1 = 1 node x 1"}, Good{{"h200:4"}, "h200:4 = 1 node x 4"},
        Good{{"h200:8"}, "h200:8 = 1 node x 8"}, Good{{"h200:16"}, "h200:16 = 2 nodes x 8"},
        Good{{"h200:32"}, "h200:32 = 4 nodes x 8"}, Good{{"a100:8"}, "a100:8 = 2 nodes x 4"},
        Good{{"rack:64"}, "rack:64 = 8 nodes x 8"}, Good{{"train=h200:16"}, "train=h200:16 = 2 nodes x 8"},
        Good{{"train,ref=h200:16"}, "train,ref=h200:16 = 2 nodes x 8"}, Good{{"k8:8000"}, "k8:8000 = 1000 nodes x 8"},
        Good{{"train=k8:16", "rollout=k8b"}, "train=k8:16 = 2 nodes x 8\nrollout=k8b:8 = 1 node x 8"},
        Good{{"train=k8b:16", "rollout=k8b:8"}, "train=k8b:16 = 2 nodes x 8\nrollout=k8b:8 = 1 node x 8"},
        Good{{"train=s8:16", "rollout,ref=s8b:8"}, "train=s8:16 = 2 nodes x 8\nrollout,ref=s8b:8 = 1 node x 8"}),
    CaseName<Good>);

TEST(ResourceFlag, FillsThePoolAndNamesTheExecutor) {
  const auto shape = ResolveShape(SampleRegistry(), {"train,ref=h200:16"});
  ASSERT_TRUE(shape.ok());
  ASSERT_EQ(shape->pools.size(), 1u);
  EXPECT_THAT(shape->pools[0].roles, ElementsAre("train", "ref"));
  EXPECT_EQ(shape->pools[0].series, "h200");
  EXPECT_EQ(shape->pools[0].profile, "h200");
  EXPECT_EQ(shape->pools[0].nodes, 2);
  EXPECT_EQ(shape->pools[0].gpus_per_node, 8);
  EXPECT_EQ(shape->executor, "gpu/default");
  EXPECT_EQ(shape->backend, "local");
  EXPECT_THAT(shape->notes, IsEmpty());
}

TEST(ResourceFlag, SeveralNodesOrPoolsUseTheDistributedExecutor) {
  Registry registry = SampleRegistry();
  registry.series["k8"].executor_distributed = "gpu_distributed/kube";
  registry.series["k8b"].executor_distributed = "gpu_distributed/kube";
  EXPECT_EQ(ResolveShape(registry, {"k8:8"})->executor, "gpu/kube");
  EXPECT_EQ(ResolveShape(registry, {"k8:16"})->executor, "gpu_distributed/kube");
  EXPECT_EQ(ResolveShape(registry, {"a=k8:8", "b=k8b:8"})->executor, "gpu_distributed/kube");
  EXPECT_EQ(ResolveShape(registry, {"a=k8:8", "b=k8b:8"})->backend, "volcano_job");
}

// --- What is refused, with the sentence as `tp submit` prints it ----------------------------------

struct Bad {
  Flags flags;
  std::string sentence;
};

class RefusedWith : public testing::TestWithParam<Bad> {};

TEST_P(RefusedWith, Sentence) {
  const absl::Status status = Refusal(GetParam().flags);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), GetParam().sentence);
}

constexpr char kExisting[] = "there are a100, cpu, h200, k4, k8, k8b, k8other, kcpu, rack, s8, s8b, s8plain";

INSTANTIATE_TEST_SUITE_P(
    Totals, RefusedWith,
    testing::Values(
        Bad{{"h200:12"},
            "--profile h200:12: series h200 has 8 cards a node, and above that a total is a multiple of it: 8 or 16"},
        Bad{{"h200:31"},
            "--profile h200:31: series h200 has 8 cards a node, and above that a total is a multiple of it: 24 or 32"},
        Bad{{"k8:12"},
            "--profile k8:12: series k8 has 8 cards a node, and above that a total is a multiple of it: 8 or 16"},
        Bad{{"h200:33"}, "--profile h200:33: series h200 has only 4 nodes x 8 = 32 cards"},
        Bad{{"h200:40"}, "--profile h200:40: series h200 has only 4 nodes x 8 = 32 cards"},
        Bad{{"cpu:5"}, "--profile cpu:5: series cpu has only 4 nodes"},
        Bad{{"h200:9223372036854775807"},
            "--profile h200:9223372036854775807: series h200 has only 4 nodes x 8 = 32 cards"},
        Bad{{"cpu:9223372036854775807"}, "--profile cpu:9223372036854775807: series cpu has only 4 nodes"},
        Bad{{"k8:9223372036854775807"}, "--profile k8:9223372036854775807: a pool has at most 100000 nodes"},
        Bad{{"k8:9223372036854775800"}, "--profile k8:9223372036854775800: a pool has at most 100000 nodes"},
        Bad{{"h200:9223372036854775808"}, "--profile h200:9223372036854775808: the total is far too large"},
        Bad{{"h200:99999999999999999999999"}, "--profile h200:99999999999999999999999: the total is far too large"},
        Bad{{"h200:0"}, "--profile h200:0: the total must be at least 1"},
        Bad{{"h200:00"}, "--profile h200:00: the total must be at least 1"},
        Bad{{"h200:-8"}, "--profile h200:-8: the total '-8' is not a whole number from 1 up"},
        Bad{{"h200:+8"}, "--profile h200:+8: the total '+8' is not a whole number from 1 up"},
        Bad{{"h200:"}, "--profile h200:: the total '' is not a whole number from 1 up"},
        Bad{{"h200:x"}, "--profile h200:x: the total 'x' is not a whole number from 1 up"},
        Bad{{"h200:8.5"}, "--profile h200:8.5: the total '8.5' is not a whole number from 1 up"},
        Bad{{"h200:8:8"}, "--profile h200:8:8: the total '8:8' is not a whole number from 1 up"},
        Bad{{"h200: 8"}, "--profile 'h200: 8': the total ' 8' is not a whole number from 1 up"},
        Bad{{"rack:72"}, "--profile rack:72: 9 nodes, and backend node takes at most 8"}),
    CaseName<Bad>);

INSTANTIATE_TEST_SUITE_P(
    Names, RefusedWith,
    testing::Values(
        Bad{{"h20:16"}, std::string("--profile h20:16: there is no profile 'h20'; did you mean h200? ") + kExisting},
        Bad{{"H200"}, std::string("--profile H200: there is no profile 'H200'; did you mean h200? ") + kExisting},
        Bad{{"2h00:8"}, std::string("--profile 2h00:8: there is no profile '2h00'; did you mean h200? ") + kExisting},
        Bad{{"tpu:8"}, std::string("--profile tpu:8: there is no profile 'tpu'; did you mean cpu? ") + kExisting},
        Bad{{"gaudi:8"}, std::string("--profile gaudi:8: there is no profile 'gaudi'; ") + kExisting},
        Bad{{""}, "--profile '': names no profile; the form is [role[,role...]=]profile[:total]"},
        Bad{{":8"}, "--profile :8: names no profile; the form is [role[,role...]=]profile[:total]"},
        Bad{{"train="}, "--profile train=: names no profile; the form is [role[,role...]=]profile[:total]"},
        Bad{{"\x1b[2Jh200"}, std::string("--profile '\\x1b[2Jh200': there is no profile '\\x1b[2Jh200'; ") + kExisting},
        Bad{{"h200\xff"},
            std::string("--profile 'h200\\xff': there is no profile 'h200\\xff'; did you mean h200? ") + kExisting}),
    CaseName<Bad>);

INSTANTIATE_TEST_SUITE_P(
    Roles, RefusedWith,
    testing::Values(
        Bad{{"=h200"}, "--profile =h200: '' is not a role: write a lower-case letter and up to 31 of [a-z0-9_-]"},
        Bad{{"train,=h200"},
            "--profile train,=h200: '' is not a role: write a lower-case letter and up to 31 of [a-z0-9_-]"},
        Bad{{"Train=h200"},
            "--profile Train=h200: 'Train' is not a role: write a lower-case letter and up to 31 of [a-z0-9_-]"},
        Bad{{"a=b=h200"},
            std::string("--profile a=b=h200: there is no profile 'b=h200'; did you mean h200? ") + kExisting},
        Bad{{"train,train=h200"}, "--profile train,train=h200: role train is given twice"},
        Bad{{"train=k8:8", "train=k8b:8"}, "--profile train=k8b:8: role train is given twice"},
        Bad{{"train=k8:8", "k8b:8"},
            "--profile k8b:8: with several --profile each needs a role in front, such as train=k8b"},
        Bad{{"k8:8", "k8b:8"}, "--profile k8:8: with several --profile each needs a role in front, such as train=k8"}),
    CaseName<Bad>);

INSTANTIATE_TEST_SUITE_P(
    Pools, RefusedWith,
    testing::Values(
        Bad{{"train=k8:8", "rollout=k4:8"},
            "--profile rollout=k4:8 has 4 cards a node and --profile train=k8:8 has 8: all pools of a job need the "
            "same"},
        Bad{{"train=k8:8", "tools=kcpu:1"},
            "--profile tools=kcpu:1 has 0 cards a node and --profile train=k8:8 has 8: all pools of a job need the "
            "same"},
        Bad{{"train=k8:8", "rollout=k8b:4"},
            "--profile rollout=k8b:4: with several pools each takes whole nodes, and series k8b has 8 cards a node: 8 "
            "or "
            "16"},
        Bad{{"train=h200:8", "rollout=h200:8"},
            "--profile train=h200:8 runs on backend local, which takes one pool a job; several pools need one of "
            "slurm, "
            "kubernetes_job, volcano_job, ray_job"},
        Bad{{"train=rack:8", "rollout=rack:8"},
            "--profile train=rack:8 runs on backend node, which takes one pool a job; several pools need one of slurm, "
            "kubernetes_job, volcano_job, ray_job"},
        Bad{{"train=k8b:16", "rollout=k8b:16"},
            "--profile rollout=k8b:16: together the pools ask for 4 nodes of series k8b, which has only 3 nodes x 8 = "
            "24 "
            "cards"},
        Bad{{"train=k8:8", "rollout=k8other:8"},
            "--profile rollout=k8other:8 runs on executor gpu/kube2 and --profile train=k8:8 on gpu/kube, which differ "
            "in "
            "`namespace`: pools of one job need the same"},
        Bad{{"train=k8:8", "rollout=s8:8"},
            "--profile rollout=s8:8 runs on executor gpu/slurm and --profile train=k8:8 on gpu/kube, which differ in "
            "`backend`: pools of one job need the same"},
        Bad{Flags(17, "a=k8"), "--profile is given 17 times; a job has at most 16 pools"}),
    CaseName<Bad>);

TEST(ResourceFlag, AKeyThatOnlyOneExecutorSetsIsADifference) {
  Registry registry = SampleRegistry();
  registry.executors["gpu/kube2"].shared = {{"namespace", "\"ml\""}};
  EXPECT_THAT(std::string(Message(ResolveShape(registry, {"a=k8", "b=k8other"}).status())),
              HasSubstr("differ in `queue`"));
  EXPECT_THAT(std::string(Message(ResolveShape(registry, {"a=k8other", "b=k8"}).status())),
              HasSubstr("differ in `queue`"));
}

// --- What an admin must mend ----------------------------------------------------------------------

void ExpectAdminMust(const Registry& registry, const Flags& flags, const std::string& sentence) {
  const absl::Status status = ResolveShape(registry, flags).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status), sentence);
}

TEST(ResourceFlag, SlurmRefusesASeriesWithoutConstraint) {
  ExpectAdminMust(
      SampleRegistry(), {"s8plain:8"},
      "--profile s8plain:8: series s8plain has no `constraint`, and backend slurm needs one; an admin sets it "
      "in registry.yaml");
}

TEST(ResourceFlag, ABrokenRegistryIsReportedAndNotFollowed) {
  Registry registry = SampleRegistry();
  registry.profiles["h200"].series = "gone";
  ExpectAdminMust(
      registry, {"h200"},
      "--profile h200: profile h200 names series 'gone', which does not exist; an admin mends registry.yaml");
  registry.series["a100"].executor = "gpu/gone";
  ExpectAdminMust(registry, {"a100"},
                  "--profile a100: series a100 names executor 'gpu/gone', which does not exist; an admin mends "
                  "registry.yaml");
  registry.executors["gpu/kube"].backend = "pbs";
  ExpectAdminMust(registry, {"k8"},
                  "--profile k8: executor gpu/kube names backend 'pbs', which does not exist; an admin mends tpd.yaml");
  registry.profiles["rack"].default_total = -1;
  ExpectAdminMust(registry, {"rack"}, "profile rack: its default shape is -1");
}

TEST(ResourceFlag, WithoutProfilesThereIsNothingToName) {
  ExpectAdminMust(Registry(), {"h200"}, "--profile h200: this deployment has no profiles; ask its admin");
}

TEST(ResourceFlag, ASeriesNameLeadsToItsProfiles) {
  Registry registry = SampleRegistry();
  registry.profiles["hopper"] = registry.profiles["h200"];
  registry.profiles["hopper"].name = "hopper";
  registry.profiles.erase("h200");
  EXPECT_THAT(std::string(Message(ResolveShape(registry, {"h200:8"}).status())),
              HasSubstr("there is no profile 'h200'; that is a series, and its profiles are hopper; there are"));
}

TEST(ResourceFlag, LongListsAreCut) {
  Registry registry;
  for (int i = 0; i < 50; ++i) AddSampleSeries(registry, fmt::format("series{:02}", i), 8, 1, "gpu/default");
  EXPECT_THAT(std::string(Message(ResolveShape(registry, {"zz"}).status())), HasSubstr("series19 and 30 more"));
}

// --- Overrides ------------------------------------------------------------------------------------

TEST(ResourceFlag, TheEntryOfATotalReplacesTheBaseAndTheProfileWinsOverTheSeries) {
  Registry registry = SampleRegistry();
  registry.series["h200"].env = {{"NCCL_DEBUG", "WARN"}, {"NCCL_IB_HCA", "mlx5"}};
  registry.series["h200"].locked_env = {{"NCCL_SOCKET_IFNAME", "ib0"}};
  Profile& profile = registry.profiles["h200"];
  profile.base = {.env = {{"NCCL_DEBUG", "INFO"}}, .overrides = {{"vllm", {.json = R"({"a":1})", .text = "--a=1"}}}};
  profile.shapes[16] = {.env = {{"NCCL_DEBUG", "TRACE"}},
                        .overrides = {{"ray-train", {.json = R"({"b":2})", .text = "b=2"}}}};
  const auto base = ResolveShape(registry, {"h200:8"});
  ASSERT_TRUE(base.ok());
  EXPECT_EQ(base->pools[0].env, (std::map<std::string, std::string>{{"NCCL_DEBUG", "INFO"}, {"NCCL_IB_HCA", "mlx5"}}));
  EXPECT_EQ(base->pools[0].locked_env, registry.series["h200"].locked_env);
  EXPECT_EQ(base->pools[0].overrides_json, (std::map<std::string, std::string>{{"vllm", R"({"a":1})"}}));
  EXPECT_EQ(base->pools[0].overrides_env, (std::map<std::string, std::string>{{"TP_OVERRIDES_VLLM", "--a=1"}}));
  EXPECT_THAT(base->notes, ElementsAre("profile h200 has no entry for a total of 8: its base overrides apply"));
  const auto sixteen = ResolveShape(registry, {"h200:16"});
  ASSERT_TRUE(sixteen.ok());
  EXPECT_EQ(sixteen->pools[0].env.at("NCCL_DEBUG"), "TRACE");
  EXPECT_EQ(sixteen->pools[0].overrides_env, (std::map<std::string, std::string>{{"TP_OVERRIDES_RAY_TRAIN", "b=2"}}));
  EXPECT_THAT(sixteen->notes, IsEmpty());
}

// --- Properties -----------------------------------------------------------------------------------

// Whatever the total: it resolves to exactly that many cards on whole nodes, or it is refused.
TEST(ResourceFlag, EveryTotalIsExactOrRefused) {
  const Registry registry = SampleRegistry();
  for (const auto& [name, series] : registry.series) {
    if (name == "s8plain") continue;
    for (int64_t total = 1; total <= 200; ++total) {
      const auto shape = ResolveShape(registry, {fmt::format("{}:{}", name, total)});
      const int64_t cards = std::max(series.gpus_per_node, 1);
      const bool divides = total <= cards || total % cards == 0;
      const int64_t nodes = (total + cards - 1) / cards;
      const bool fits = series.nodes.empty() || nodes <= static_cast<int64_t>(series.nodes.size());
      const bool small = name != "rack" || nodes <= 8;
      ASSERT_EQ(shape.ok(), divides && fits && small) << name << ":" << total << " " << shape.status();
      if (!shape.ok()) continue;
      ASSERT_EQ(shape->pools[0].nodes, nodes);
      ASSERT_EQ(series.gpus_per_node == 0 ? shape->pools[0].nodes : shape->cards(), total);
    }
  }
}

// Whatever is typed: an answer, and no byte of it that steers a terminal.
TEST(ResourceFlag, GarbageGetsACleanSentence) {
  const Registry registry = SampleRegistry();
  std::mt19937 random(20260101);
  const std::string alphabet = "h200:=,-+ 9\x1b\n\x9b\xff\xc2 train";
  for (int round = 0; round < 20'000; ++round) {
    Flags flags(1 + random() % 3);
    for (std::string& flag : flags) {
      for (size_t i = random() % 24; i > 0; --i) flag += alphabet[random() % alphabet.size()];
    }
    const auto shape = ResolveShape(registry, flags);
    if (shape.ok()) continue;
    const std::string_view sentence = Message(shape.status());
    ASSERT_FALSE(sentence.empty());
    for (const char c : sentence) ASSERT_TRUE(c >= ' ' && c <= '~') << sentence;
  }
}

TEST(ResourceFlag, HugeTotalsNeverOverflow) {
  const Registry registry = SampleRegistry();
  const uint64_t top = std::numeric_limits<uint64_t>::max();
  const uint64_t middle = std::numeric_limits<int64_t>::max();
  for (const char* name : {"cpu", "h200", "k8", "k4", "rack", "s8"}) {
    for (uint64_t step = 0; step < 64; ++step) {
      for (const uint64_t total : {top - step, middle - step, middle + step, (middle / 8) + step}) {
        EXPECT_TRUE(absl::IsInvalidArgument(ResolveShape(registry, {fmt::format("{}:{}", name, total)}).status()));
      }
    }
  }
}

// --- Helpers of sentences -------------------------------------------------------------------------

TEST(NearMiss, FindsSlipsAndNothingFarther) {
  const std::vector<std::string> names = {"a100", "h100", "h200", "kubernetes_job"};
  EXPECT_EQ(NearMiss("h20", names), "h200");
  EXPECT_EQ(NearMiss("h2000", names), "h200");
  EXPECT_EQ(NearMiss("H200", names), "h200");
  EXPECT_EQ(NearMiss("h020", names), "h200");
  EXPECT_EQ(NearMiss("kubernets_jobs", names), "kubernetes_job");
  EXPECT_EQ(NearMiss("", names), std::nullopt);
  EXPECT_EQ(NearMiss("mi300", names), std::nullopt);
  EXPECT_EQ(NearMiss(std::string(10'000, 'h'), names), std::nullopt);
}

TEST(NearMiss, DistanceIsSymmetricAndCountsASwapAsOne) {
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abcd", "abdc"), 1u);
  EXPECT_EQ(EditDistance("train", "trian"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), EditDistance("sitting", "kitten"));
}

TEST(Printable, QuotesWhatWouldSteerATerminal) {
  EXPECT_EQ(Quoted("plain"), "'plain'");
  EXPECT_EQ(Quoted("\x1b[31m"), "'\\x1b[31m'");
  EXPECT_EQ(Quoted("a\r\nb\x7f"), "'a\\x0d\\x0ab\\x7f'");
  EXPECT_EQ(Quoted("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
  EXPECT_EQ(Quoted("\xc2\x9b"), "'\\xc2\\x9b'");
  EXPECT_EQ(Quoted("\xff\xc3"), "'\\xff\\xc3'");
  EXPECT_EQ(Quoted(std::string(200, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace tp::core
