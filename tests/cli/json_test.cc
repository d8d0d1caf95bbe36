#include "cli/render/json.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>
#include <nlohmann/json.hpp>

#include "cli/metrics.h"
#include "cli/render/time.h"
#include "tp/v1/run.pb.h"
#include "tp/v1/usage.pb.h"

namespace tp::cli {
namespace {

v1::Run SampleRun() {
  v1::Run run;
  run.set_n(42);
  run.set_id("train-42");
  run.set_state(v1::RUN_STATE_RUNNING);
  *run.mutable_created_at() = ToProto(absl::FromUnixMillis(1'796'025'612'345));
  (*run.mutable_labels())["b"] = "2";
  (*run.mutable_labels())["a"] = "yes";
  run.set_gpu_ms(12'345);
  v1::Step& step = *run.add_steps();
  step.mutable_spec()->add_argv("python3");
  step.mutable_spec()->mutable_time_limit()->set_seconds(7200);
  return run;
}

TEST(ToJsonTest, NamesEveryFieldOfTheMessage) {
  const Json json = ToJson(SampleRun());
  EXPECT_EQ(json["n"], 42);
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["created_at"], "2026-11-30T08:00:12.345Z");
  EXPECT_EQ(json["labels"].dump(), R"({"a":"yes","b":"2"})");
  EXPECT_EQ(json["gpu_ms"], 12'345);
  EXPECT_EQ(json["gpu_seconds"].dump(), "12.345");
  EXPECT_EQ(json["owner"], "");
  EXPECT_TRUE(json["ended_at"].is_null());
  EXPECT_EQ(json["steps"][0]["spec"]["time_limit"], "7200s");
  EXPECT_TRUE(json["steps"][0]["spec"]["user_retries"].is_null()) << "optional and absent";
  EXPECT_TRUE(json["steps"][0]["state"].is_null()) << "an enum's zero says nothing";
  EXPECT_TRUE(json["steps"][0]["attempt"].is_null());
}

TEST(ToJsonTest, KeepsTheOrderOfTheApi) {
  EXPECT_EQ(ToJson(v1::UsageRow()).dump(), R"({"key":"","gpu_ms":0,"gpu_seconds":0.0,"runs":0})");
}

TEST(DumpJsonTest, IsAscii) {
  v1::Run run;
  run.set_reason("\u009bü\x1b");
  const std::string text = DumpJson(ToJson(run));
  EXPECT_NE(text.find("\"\\u009b\\u00fc\\u001b\""), std::string::npos) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(DumpYamlTest, QuotesWhatYamlWouldMisread) {
  Json document = NewDocument();
  document["plain"] = "main step";
  document["tricky"] = {"yes", "12", "a: b", "#x", "", "- x", "null", "\x1b", "trailing "};
  document["empty"] = {{"list", Json::array()}, {"object", Json::object()}, {"nothing", nullptr}};
  document["list"] = {{{"a", 1}, {"b", {1, 2}}}, {{"a", true}}};
  EXPECT_EQ(DumpYaml(document),
            "schema_version: 1\n"
            "plain: main step\n"
            "tricky:\n"
            "  - \"yes\"\n"
            "  - \"12\"\n"
            "  - \"a: b\"\n"
            "  - \"#x\"\n"
            "  - \"\"\n"
            "  - \"- x\"\n"
            "  - \"null\"\n"
            "  - \"\\u001b\"\n"
            "  - \"trailing \"\n"
            "empty:\n"
            "  list: []\n"
            "  object: {}\n"
            "  nothing: null\n"
            "list:\n"
            "  - a: 1\n"
            "    b:\n"
            "      - 1\n"
            "      - 2\n"
            "  - a: true\n");
}

TEST(DumpYamlTest, IsReadBackAsTheSame) {
  const YAML::Node node = YAML::Load(DumpYaml(ToJson(SampleRun())));
  EXPECT_EQ(node["id"].as<std::string>(), "train-42");
  EXPECT_EQ(node["created_at"].as<std::string>(), "2026-11-30T08:00:12.345Z");
  EXPECT_EQ(node["steps"][0]["spec"]["argv"][0].as<std::string>(), "python3");
  EXPECT_TRUE(node["ended_at"].IsNull());
}

google::protobuf::RepeatedPtrField<std::string> Lines(std::initializer_list<const char*> lines) {
  return {lines.begin(), lines.end()};
}

TEST(MetricsTest, PutsTheStepFirst) {
  const Json metrics = MetricsToJson(Lines({R"({"loss": 2.5, "step": 1})", R"({"step": 2, "lr": 0.1, "loss": 2})"}));
  EXPECT_EQ(MetricsTable(metrics, {}),
            "step  loss   lr\n"
            "   1   2.5    -\n"
            "   2     2  0.1\n");
}

TEST(MetricsTest, KeepsBrokenLinesAsText) {
  const Json metrics = MetricsToJson(Lines({"not json", "[1]", R"({"step": 1})"}));
  EXPECT_EQ(metrics.dump(), R"(["not json","[1]",{"step":1}])");
  EXPECT_EQ(MetricsTable(metrics, {}), "step\n   1\n");
}

}  // namespace
}  // namespace tp::cli
