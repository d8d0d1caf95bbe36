#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "core/resource.h"
#include "sample_registry.h"

namespace tp::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Env = std::map<std::string, std::string>;

struct Merged {
  absl::StatusOr<Env> env;
  std::vector<std::string> notes;
};

Merged Merge(const Env& step, const Env& pool, const Env& flag, const Env& locked = {}) {
  StepSpec spec;
  spec.env = step;
  spec.explicit_env = flag;
  PoolShape shape;
  shape.series = "h200";
  shape.profile = "hopper";
  shape.env = pool;
  shape.locked_env = locked;
  Merged merged;
  merged.env = MergeEnv(spec, shape, &merged.notes);
  return merged;
}

TEST(MergeEnv, LayersWithoutConflictAddUpSilently) {
  const Merged merged = Merge({{"A", "1"}}, {{"B", "2"}}, {{"C", "3"}}, {{"D", "4"}});
  EXPECT_EQ(*merged.env, (Env{{"A", "1"}, {"B", "2"}, {"C", "3"}, {"D", "4"}}));
  EXPECT_THAT(merged.notes, IsEmpty());
}

TEST(MergeEnv, TheProfileReplacesTheProjectFileAndSaysSo) {
  const Merged merged = Merge({{"NCCL_DEBUG", "INFO"}}, {{"NCCL_DEBUG", "WARN"}}, {});
  EXPECT_EQ(merged.env->at("NCCL_DEBUG"), "WARN");
  EXPECT_THAT(merged.notes, ElementsAre("NCCL_DEBUG: profile hopper replaces the value from tp.yaml"));
}

TEST(MergeEnv, TheFlagReplacesBothAndSaysSo) {
  const Merged merged = Merge({{"A", "1"}, {"B", "1"}}, {{"B", "2"}, {"C", "2"}}, {{"A", "3"}, {"B", "3"}, {"C", "3"}});
  EXPECT_EQ(*merged.env, (Env{{"A", "3"}, {"B", "3"}, {"C", "3"}}));
  EXPECT_THAT(
      merged.notes,
      ElementsAre("B: profile hopper replaces the value from tp.yaml", "A: --env replaces the value from tp.yaml",
                  "B: --env replaces the value of profile hopper", "C: --env replaces the value of profile hopper"));
}

TEST(MergeEnv, EqualValuesReplaceNothing) {
  EXPECT_THAT(Merge({{"A", "1"}}, {{"A", "1"}}, {{"A", "1"}}, {{"A", "1"}}).notes, IsEmpty());
}

TEST(MergeEnv, ALockWinsOverFileAndProfileAndRefusesTheFlag) {
  const Merged merged = Merge({{"NET", "eth0"}}, {{"NET", "eth1"}}, {}, {{"NET", "ib0"}});
  EXPECT_EQ(merged.env->at("NET"), "ib0");
  EXPECT_THAT(merged.notes, ElementsAre("NET: series h200 locks this variable and replaces the value from tp.yaml"));
  const Merged refused = Merge({}, {}, {{"NET", "eth0"}}, {{"NET", "ib0"}});
  EXPECT_EQ(refused.env.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(refused.env.status()), "--env NET: series h200 locks this variable; leave it out");
}

TEST(MergeEnv, AskingForTheLockedValueItselfIsFine) {
  EXPECT_EQ(Merge({}, {}, {{"NET", "ib0"}}, {{"NET", "ib0"}}).env->at("NET"), "ib0");
}

TEST(MergeEnv, TheSameNoteOfTwoPoolsIsSaidOnce) {
  StepSpec spec;
  spec.env = {{"A", "1"}};
  PoolShape pool;
  pool.profile = "hopper";
  pool.env = {{"A", "2"}};
  std::vector<std::string> notes;
  ASSERT_TRUE(MergeEnv(spec, pool, &notes).ok());
  ASSERT_TRUE(MergeEnv(spec, pool, &notes).ok());
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_TRUE(MergeEnv(spec, pool, nullptr).ok());
}

// No note tells a value: they may be secret.
TEST(MergeEnv, NotesHoldNoValues) {
  const Merged merged = Merge({{"A", "s3cret1"}}, {{"A", "s3cret2"}}, {{"A", "s3cret3"}});
  for (const std::string& note : merged.notes) EXPECT_EQ(note.find("s3cret"), std::string::npos);
}

// For every assignment of one variable to the four layers, the last one that has it wins.
TEST(MergeEnv, PrecedenceIsTheSameForEveryCombination) {
  for (unsigned present = 0; present < 16; ++present) {
    const auto layer = [&](unsigned bit, const char* value) {
      return (present & bit) != 0 ? Env{{"X", value}} : Env{};
    };
    const Merged merged = Merge(layer(1, "step"), layer(2, "pool"), layer(4, "flag"), layer(8, "lock"));
    if ((present & 12) == 12) {
      EXPECT_FALSE(merged.env.ok());
      continue;
    }
    const char* winner = nullptr;
    if (present & 1) winner = "step";
    if (present & 2) winner = "pool";
    if (present & 4) winner = "flag";
    if (present & 8) winner = "lock";
    EXPECT_EQ(*merged.env, winner == nullptr ? Env{} : (Env{{"X", winner}}));
  }
}

struct BadVariable {
  std::string name;
  std::string value;
  std::string sentence;
};

class UserEnv : public testing::TestWithParam<BadVariable> {};

TEST_P(UserEnv, Refuses) {
  const absl::Status status = CheckUserEnv({{"GOOD", "1"}, {GetParam().name, GetParam().value}}, "--env");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "--env: " + GetParam().sentence);
}

constexpr char kNotAName[] = " is not a variable's name: write letters, digits and _, no digit first";

INSTANTIATE_TEST_SUITE_P(
    CheckUserEnv, UserEnv,
    testing::Values(
        BadVariable{"TP_RUN_ID", "x", "TP_RUN_ID: names that begin with TP_ belong to tp"},
        BadVariable{"TP_", "x", "TP_: names that begin with TP_ belong to tp"},
        BadVariable{"CUDA_VISIBLE_DEVICES", "0",
                    "CUDA_VISIBLE_DEVICES is set by tp to the cards that the job gets; to use fewer, set it "
                    "inside the command"},
        BadVariable{"CUDA_DEVICE_ORDER", "FASTEST_FIRST",
                    "CUDA_DEVICE_ORDER is set by tp, whose numbers of cards are those of nvidia-smi; to use "
                    "another order, set it inside the command"},
        BadVariable{"", "x", std::string("''") + kNotAName}, BadVariable{"1A", "x", std::string("'1A'") + kNotAName},
        BadVariable{"A B", "x", std::string("'A B'") + kNotAName},
        BadVariable{"A=B", "x", std::string("'A=B'") + kNotAName},
        BadVariable{"A-B", "x", std::string("'A-B'") + kNotAName},
        BadVariable{"\x1b[2J", "x", std::string("'\\x1b[2J'") + kNotAName},
        BadVariable{std::string("A\0B", 3), "x", std::string("'A\\x00B'") + kNotAName},
        BadVariable{"A", std::string("x\0y", 3), "A: the value holds a NUL byte, which no environment can"},
        BadVariable{"A", std::string(131'070, 'x'),
                    "'A' is 131072 bytes long, and the kernel takes at most 131071: put it into a file"}),
    [](const auto& bad) { return "case" + std::to_string(bad.index); });

TEST(CheckUserEnv, TakesEverythingElse) {
  EXPECT_TRUE(CheckUserEnv({}, "--env").ok());
  EXPECT_TRUE(CheckUserEnv({{"PATH", ""},
                            {"_x9", "a\nb\xff"},
                            {"tp_run_id", "lower case is the user's"},
                            {"TPU_NAME", "x"},
                            {"MASTER_PORT", "1"},
                            {"A", std::string(131'069, 'x')}},
                           "--env")
                  .ok());
}

// --- Origins --------------------------------------------------------------------------------------

Registry LayeredRegistry() {
  Registry registry;
  AddSampleExecutor(registry, "gpu", "default", "local");
  Series& series = registry.series["h200"];
  series.name = "h200";
  series.gpus_per_node = 8;
  series.executor = "gpu/default";
  series.env = {{"SERIES", "s"}, {"S_P", "s"}, {"S_SH", "s"}, {"S_FLAG", "s"}};
  series.locked_env = {{"LOCKED", "l"}};
  Profile& profile = registry.profiles["hopper"];
  profile.name = "hopper";
  profile.series = "h200";
  profile.default_total = 8;
  profile.base.env = {{"PROFILE", "p"}, {"S_P", "p"}, {"P_SH", "p"}};
  profile.shapes[16].env = {{"PROFILE", "p"}, {"S_P", "p"}, {"P_SH", "sh"}, {"S_SH", "sh"}, {"SHAPE", "sh"}};
  return registry;
}

std::map<std::string, OriginatedValue> Explained(const std::string& flag) {
  const Registry registry = LayeredRegistry();
  StepSpec spec;
  spec.env = {{"FILE", "f"}, {"S_P", "f"}, {"LOCKED", "f"}};
  spec.explicit_env = {{"FLAG", "x"}, {"S_FLAG", "x"}};
  return ExplainEnv(registry, spec, ResolveShape(registry, {flag})->pools[0]).value();
}

TEST(ExplainEnv, NamesTheLayerThatWon) {
  const std::map<std::string, OriginatedValue> expected = {
      {"FILE", {"f", EnvOrigin::kProjectFile}}, {"SERIES", {"s", EnvOrigin::kSeries}},
      {"S_SH", {"s", EnvOrigin::kSeries}},      {"PROFILE", {"p", EnvOrigin::kProfile}},
      {"S_P", {"p", EnvOrigin::kProfile}},      {"P_SH", {"p", EnvOrigin::kProfile}},
      {"FLAG", {"x", EnvOrigin::kCommandLine}}, {"S_FLAG", {"x", EnvOrigin::kCommandLine}},
      {"LOCKED", {"l", EnvOrigin::kLocked}}};
  EXPECT_EQ(Explained("hopper:8"), expected);
}

TEST(ExplainEnv, AShapesEntryWinsOverItsProfileAndItsSeries) {
  const auto explained = Explained("hopper:16");
  EXPECT_EQ(explained.at("SHAPE"), (OriginatedValue{"sh", EnvOrigin::kShape}));
  EXPECT_EQ(explained.at("P_SH"), (OriginatedValue{"sh", EnvOrigin::kShape}));
  EXPECT_EQ(explained.at("S_SH"), (OriginatedValue{"sh", EnvOrigin::kShape}));
  EXPECT_EQ(explained.at("PROFILE"), (OriginatedValue{"p", EnvOrigin::kProfile}));
  EXPECT_EQ(explained.at("SERIES"), (OriginatedValue{"s", EnvOrigin::kSeries}));
}

}  // namespace
}  // namespace tp::core
