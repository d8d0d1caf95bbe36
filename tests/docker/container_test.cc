#include "backends/docker/container.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/docker/container_request.h"

namespace tp::docker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Inspect(const std::string& state, const std::string& host = "{}") {
  return R"({"Id":"c1","Name":"/k-0-1","Config":{"Labels":{"tp.pool":"0","tp.rank":"1"}},"State":)" + state +
         R"(,"HostConfig":)" + host + "}";
}

TEST(Container, NonsenseIsNoAnswer) {
  for (const char* text :
       {"", "null", "{}", "[1]", "[{}]", R"([{"Id":"a"}])", R"([{"Id":1,"State":"running"}])", "<html>"}) {
    EXPECT_FALSE(ParseContainerList(text)) << text;
    EXPECT_FALSE(ParseInspect(text)) << text;
  }
  EXPECT_TRUE(ParseContainerList("[]"));
}

TEST(Container, StatesThatMayHaveProcessesAreActive) {
  for (const char* state : {"running", "paused", "restarting", "removing", "something new"}) {
    const auto list = ParseContainerList(fmt::format(R"([{{"Id":"a","Names":["/n"],"State":"{}"}}])", state));
    ASSERT_TRUE(list);
    EXPECT_EQ(list->at(0).state, ContainerState::kActive) << state;
    EXPECT_EQ(list->at(0).name, "n");
  }
}

TEST(Container, AnEndIsToldByStateAndCode) {
  const auto end = [](const std::string& state, bool outage = false) {
    const auto inspected = ParseInspect(Inspect(state));
    return inspected ? EndOf(*inspected, outage) : EngineEnd::kFailed;
  };
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0})"), EngineEnd::kExitedZero);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0})", true), EngineEnd::kNone);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":137,"OOMKilled":true})"), EngineEnd::kOutOfMemory);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0,"OOMKilled":true})"), EngineEnd::kExitedZero);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":3})"), EngineEnd::kNone);
  EXPECT_EQ(end(R"({"Status":"running","ExitCode":0})"), EngineEnd::kNone);
}

TEST(Container, KnowsWhatWasNeverStarted) {
  EXPECT_FALSE(ParseInspect(Inspect(R"({"Status":"created","StartedAt":"0001-01-01T00:00:00Z"})"))->started_once);
  EXPECT_TRUE(ParseInspect(Inspect(R"({"Status":"exited","StartedAt":"2026-12-01T00:00:00.5Z"})"))->started_once);
}

std::vector<int> CardsOf(const std::string& host) {
  std::vector<int> cards;
  for (const ForeignCard& card : CardsHeldBy(Inspect("{}", host), 4)) cards.push_back(card.card);
  return cards;
}

TEST(Container, CardsOfOthersAreCounted) {
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"DeviceIDs":["1","3"]}]})"), (std::vector<int>{1, 3}));
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"DeviceIDs":["GPU-x"]}]})"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"Count":-1}]})"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(
      CardsOf(
          R"({"Devices":[{"PathOnHost":"/dev/nvidia2","PathInContainer":"/dev/nvidia0"},{"PathOnHost":"/dev/nvidiactl"}]})"),
      (std::vector<int>{2}));
  EXPECT_EQ(CardsOf("{}"), std::vector<int>());
  EXPECT_EQ(CardsHeldBy(Inspect("{}", R"({"DeviceRequests":[{"Count":1}]})"), 4).at(0).holder, "container k-0-1");
}

LaunchSpec Spec() {
  LaunchSpec spec;
  spec.key = "tp-lab-e1-7-s0-a1";
  spec.nonce = "n1";
  spec.paths = {"/s/ada/t-7/attempts/t-1", "/s/ada/t-7/attempts/t-1/work", "/s/ada/t-7/output", "/s/ada/t-7/results/t"};
  spec.argv = {"python3", "train.py"};
  spec.log_max_bytes = 4096;
  spec.heartbeat_ms = 1000;
  spec.demands.resize(1);
  RankLaunch rank;
  rank.placement = {"box-1", "rank0", {2, 3}};
  rank.env = {{"CUDA_VISIBLE_DEVICES", "2,3"}, {"API_KEY", "hunter2"}};
  spec.ranks = {rank};
  return spec;
}

ExecutorConfig WithImage(const std::string& network = "") {
  ExecutorConfig config;
  config.image = "img";
  config.network = network;
  return config;
}

const Site kSite = {.deployment = "lab",
                    .storage_root = "/s",
                    .rank_binary = "/s/.tp-rank/tp-rank-1",
                    .user = "7:8",
                    .devices = {"nvidiactl"}};

nlohmann::json Body(const LaunchSpec& spec, const ExecutorConfig& config, const Site& site) {
  return nlohmann::json::parse(CreateBody(spec, spec.ranks[0], config, site));
}

TEST(CreateBody, SaysEverythingOfTheRank) {
  LaunchSpec spec = Spec();
  spec.demands[0].limits = {.cpus = 4, .memory_bytes = 1 << 30, .shm_bytes = 1 << 20, .memlock_bytes = kUnlimited};
  ExecutorConfig config = WithImage();
  config.volumes = {"/data:/d:ro"};
  const nlohmann::json body = Body(spec, config, kSite);
  EXPECT_EQ(body["Image"], "img");
  EXPECT_EQ(body["User"], "7:8");
  EXPECT_EQ(body["Entrypoint"], nlohmann::json({"/s/.tp-rank/tp-rank-1"}));
  EXPECT_EQ(body["Cmd"][0], "run");
  EXPECT_EQ(body["Cmd"].back(), "train.py");
  EXPECT_EQ(body["Labels"]["tp.nonce"], "n1");
  const nlohmann::json& host = body["HostConfig"];
  EXPECT_EQ(host["RestartPolicy"]["Name"], "no");
  EXPECT_EQ(host["AutoRemove"], false);
  EXPECT_EQ(host["NanoCpus"], 4'000'000'000);
  EXPECT_EQ(host["Memory"], host["MemorySwap"]);
  EXPECT_EQ(host["Ulimits"][0]["Soft"], -1);
  EXPECT_EQ(host["Mounts"][0]["Source"], "/s");
  EXPECT_EQ(host["Mounts"][1]["ReadOnly"], true);
  EXPECT_EQ(host["Mounts"][1]["Target"], "/d");
  EXPECT_EQ(host["Devices"].size(), 3u);
  EXPECT_EQ(host["Devices"][0]["PathInContainer"], "/dev/nvidia2");
}

TEST(CreateBody, ARuntimeForCardsNumbersThemAnew) {
  Site site = kSite;
  site.nvidia_runtime = true;
  const nlohmann::json body = Body(Spec(), WithImage(), site);
  EXPECT_EQ(body["HostConfig"]["DeviceRequests"][0]["DeviceIDs"], nlohmann::json({"2", "3"}));
  EXPECT_THAT(body["Env"].dump(), HasSubstr("CUDA_VISIBLE_DEVICES=0,1"));
  LaunchSpec spec = Spec();
  spec.demands[0].virtual_cards = true;
  EXPECT_FALSE(Body(spec, WithImage(), site)["HostConfig"].contains("DeviceRequests"));
  EXPECT_THAT(Body(spec, WithImage(), site)["Env"].dump(), HasSubstr("CUDA_VISIBLE_DEVICES=2,3"));
}

TEST(CreateBody, WhatIsNoTextGoesAsHex) {
  LaunchSpec spec = Spec();
  spec.ranks[0].env["RAW"] = "a\xff";
  spec.argv.push_back("\xfe");
  const nlohmann::json body = Body(spec, WithImage(), kSite);
  EXPECT_THAT(body["Env"].dump(), HasSubstr("TP_RANK_HEX_RAW=61ff"));
  EXPECT_THAT(body["Env"].dump(), HasSubstr("TP_RANK_HEX_ARGV=1"));
  EXPECT_EQ(body["Cmd"].back(), "fe");
}

TEST(CreateBody, IsShownWithoutSecrets) {
  const std::string text = DescribeRequests(Spec(), WithImage(), kSite);
  EXPECT_THAT(text, HasSubstr("API_KEY=***"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(Config, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(CheckForContainers(Spec(), {}).ok()) << "no image";
  EXPECT_TRUE(CheckForContainers(Spec(), WithImage()).ok());
  LaunchSpec two = Spec();
  two.ranks.push_back(two.ranks[0]);
  two.ranks[1].rank = 1;
  EXPECT_THAT(std::string(CheckForContainers(two, WithImage()).message()), HasSubstr("a name of its own"));
  EXPECT_TRUE(CheckForContainers(two, WithImage("host")).ok());
  two.ranks[1].placement.address = "rank1";
  EXPECT_TRUE(CheckForContainers(two, WithImage()).ok());
  EXPECT_FALSE(ParseExecutorConfig(R"({"storage":{"tpd_path":"/other"}})", "/s").ok());
  EXPECT_FALSE(ParseExecutorConfig(R"({"run_as":"owner"})", "/s").ok());
  EXPECT_FALSE(ParseExecutorConfig(R"({"image_pull_deadline":"soon"})", "/s").ok());
  EXPECT_EQ(ParseExecutorConfig(R"({"image_pull_deadline":"5m"})", "/s")->image_pull_deadline, absl::Minutes(5));
}

}  // namespace
}  // namespace tp::docker
