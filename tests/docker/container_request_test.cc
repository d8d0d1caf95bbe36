#include "backends/docker/container_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::docker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LaunchSpec OneRank() {
  LaunchSpec spec;
  spec.key = "tp-d-e1-1-s0-a1";
  spec.nonce = "n1";
  spec.owner = "ada";
  spec.run_id = "run-1";
  spec.step_name = "train";
  spec.image = "trainer:1";
  spec.paths = {"/s/a", "/s/a/work", "/s/output", "/s/results"};
  spec.argv = {"python", "train.py"};
  spec.log_max_bytes = 65536;
  spec.heartbeat_ms = 1000;
  RankLaunch rank;
  rank.placement = {"node0", "node0", {1, 3}};
  rank.env = {{"CUDA_VISIBLE_DEVICES", "1,3"}, {"NAME", "value"}};
  spec.ranks = {rank};
  spec.demands.resize(1);
  return spec;
}

Site HereSite() {
  Site site;
  site.deployment = "d";
  site.storage_root = "/s";
  site.rank_binary = "/s/tp-rank";
  site.user = "7:8";
  return site;
}

std::string BodyFor(const LaunchSpec& spec, const Site& site = HereSite(), const ExecutorConfig& config = {}) {
  return CreateBody(spec, spec.ranks[0], config, site);
}

TEST(CreateBody, IsThisText) {
  LaunchSpec spec = OneRank();
  spec.ranks[0].placement.cards.clear();
  EXPECT_EQ(
      BodyFor(spec),
      R"({"Image":"trainer:1","Entrypoint":["/s/tp-rank"],"Cmd":["run","--dir","/s/a","--key",)"
      R"("tp-d-e1-1-s0-a1","--nonce","n1","--pool","0","--rank","0","--workdir","/s/a/work",)"
      R"("--log-max-bytes","65536","--heartbeat-ms","1000","--","python","train.py"],)"
      R"("Env":["NVIDIA_VISIBLE_DEVICES=void","CUDA_VISIBLE_DEVICES=1,3","NAME=value"],"User":"7:8","WorkingDir":"/","Labels":{)"
      R"("tp.deployment":"d","tp.key":"tp-d-e1-1-s0-a1","tp.nonce":"n1","tp.pool":"0","tp.rank":"0",)"
      R"("tp.attempt-dir":"/s/a","tp.owner":"ada","tp.run":"run-1","tp.step":"train"},)"
      R"("StopSignal":"SIGTERM","HostConfig":{"RestartPolicy":{"Name":"no"},"AutoRemove":false,)"
      R"("Mounts":[{"Type":"bind","Source":"/s","Target":"/s"}]}})");
}

TEST(CreateBody, TheOneContainerOfAJobReachesItselfAtHome) {
  LaunchSpec spec = OneRank();
  spec.ranks[0].env = {{"MASTER_ADDR", "node0"}, {"PET_MASTER_ADDR", "node0"}, {"TP_HEAD_ADDR", "node0"}};
  EXPECT_THAT(BodyFor(spec),
              HasSubstr(R"("MASTER_ADDR=127.0.0.1","PET_MASTER_ADDR=127.0.0.1","TP_HEAD_ADDR=127.0.0.1")"));
  ExecutorConfig config;
  config.network = "host";
  EXPECT_THAT(BodyFor(spec, HereSite(), config), HasSubstr(R"("MASTER_ADDR=node0")"));
}

TEST(CreateBody, HostileTextStaysText) {
  LaunchSpec spec = OneRank();
  spec.argv = {"a \"b\"", "$(c)\n", "\xc3\xa9"};
  spec.ranks[0].env = {{"A", "\"'\n$(x)\\"}};
  const std::string body = BodyFor(spec);
  EXPECT_THAT(body, HasSubstr(R"("--","a \"b\"","$(c)\n",)"));
  EXPECT_THAT(body, HasSubstr(R"("A=\"'\n$(x)\\")"));
  EXPECT_THAT(body, Not(HasSubstr("TP_RANK_HEX")));
}

TEST(CreateBody, BytesThatAreNoTextGoAsHex) {
  LaunchSpec spec = OneRank();
  spec.argv = {"run", "\xff\x01"};
  spec.ranks[0].env = {{"A", "\xfe\n"}, {"B", "b"}};
  const std::string body = BodyFor(spec);
  EXPECT_THAT(body, HasSubstr(R"("--","72756e","ff01"])"));
  EXPECT_THAT(body,
              HasSubstr(R"("Env":["TP_RANK_HEX_ARGV=1","NVIDIA_VISIBLE_DEVICES=void","TP_RANK_HEX_A=fe0a","B=b"])"));
}

TEST(CreateBody, CardsWithTheRuntimeAreNumberedFromZero) {
  Site site = HereSite();
  site.cards_by = CardsBy::kNvidiaRuntime;
  const std::string body = BodyFor(OneRank(), site);
  EXPECT_THAT(body,
              HasSubstr(R"("DeviceRequests":[{"Driver":"nvidia","DeviceIDs":["1","3"],"Capabilities":[["gpu"]]}])"));
  EXPECT_THAT(body, HasSubstr("\"CUDA_VISIBLE_DEVICES=0,1\""));
  EXPECT_THAT(body, Not(HasSubstr("\"Devices\"")));
  EXPECT_THAT(body, Not(HasSubstr("NVIDIA_VISIBLE_DEVICES")));
}

// Where the runtime is the engine's default, an image or a job could have all cards by this variable.
TEST(CreateBody, NobodyHasCardsByAVariable) {
  LaunchSpec spec = OneRank();
  spec.ranks[0].env["NVIDIA_VISIBLE_DEVICES"] = "all";
  EXPECT_THAT(BodyFor(spec), Not(HasSubstr("NVIDIA_VISIBLE_DEVICES=all")));
  EXPECT_THAT(BodyFor(spec), HasSubstr("\"NVIDIA_VISIBLE_DEVICES=void\""));
  Site site = HereSite();
  site.cards_by = CardsBy::kNvidiaRuntime;
  EXPECT_THAT(BodyFor(spec, site), Not(HasSubstr("NVIDIA_VISIBLE_DEVICES")));
  spec.demands[0].virtual_cards = true;
  EXPECT_THAT(BodyFor(spec, site), HasSubstr("\"NVIDIA_VISIBLE_DEVICES=void\""));
}

TEST(CreateBody, CardsWithoutTheRuntimeAreDevices) {
  Site site = HereSite();
  site.devices = {"nvidiactl"};
  site.device_directory = "/fake";
  const std::string body = BodyFor(OneRank(), site);
  for (const char* name : {"nvidia1", "nvidia3", "nvidiactl"}) {
    EXPECT_THAT(body, HasSubstr(std::string(R"({"PathOnHost":"/fake/)") + name + R"(","PathInContainer":"/dev/)" +
                                name + R"(","CgroupPermissions":"rw"})"));
  }
  EXPECT_THAT(body, HasSubstr("\"CUDA_VISIBLE_DEVICES=0,1\""));
  EXPECT_THAT(body, Not(HasSubstr("DeviceRequests")));
}

TEST(CreateBody, CardsByTheirNamesOfCdi) {
  Site site = HereSite();
  site.cards_by = CardsBy::kCdi;
  const std::string body = BodyFor(OneRank(), site);
  EXPECT_THAT(body,
              HasSubstr(R"("DeviceRequests":[{"Driver":"cdi","DeviceIDs":["nvidia.com/gpu=1","nvidia.com/gpu=3"])"));
  EXPECT_THAT(body, HasSubstr("\"CUDA_VISIBLE_DEVICES=0,1\""));
  EXPECT_THAT(body, Not(HasSubstr("\"Devices\"")));
}

TEST(CreateBody, VirtualCardsAreNoDevices) {
  LaunchSpec spec = OneRank();
  spec.demands[0].virtual_cards = true;
  for (const CardsBy way : {CardsBy::kDeviceNodes, CardsBy::kCdi, CardsBy::kNvidiaRuntime}) {
    Site site = HereSite();
    site.cards_by = way;
    const std::string body = BodyFor(spec, site);
    EXPECT_THAT(body, Not(HasSubstr("DeviceRequests")));
    EXPECT_THAT(body, Not(HasSubstr("nvidia1")));
    EXPECT_THAT(body, HasSubstr("\"CUDA_VISIBLE_DEVICES=1,3\""));
  }
}

TEST(CreateBody, Limits) {
  LaunchSpec spec = OneRank();
  spec.demands[0].limits = {.cpus = 3, .memory_bytes = 4096, .shm_bytes = 512, .memlock_bytes = kUnlimited};
  EXPECT_THAT(BodyFor(spec), HasSubstr(R"("NanoCpus":3000000000,"Memory":4096,"MemorySwap":4096,"ShmSize":512,)"
                                       R"("Ulimits":[{"Name":"memlock","Soft":-1,"Hard":-1}])"));
}

TEST(CreateBody, Volumes) {
  ExecutorConfig config;
  config.volume_name = "tpvol";
  config.volumes = {"/data:/in:ro", "cache:/c"};
  EXPECT_THAT(BodyFor(OneRank(), HereSite(), config),
              HasSubstr(R"("Mounts":[{"Type":"volume","Source":"tpvol","Target":"/s"},)"
                        R"({"Type":"bind","Source":"/data","Target":"/in","ReadOnly":true},)"
                        R"({"Type":"volume","Source":"cache","Target":"/c","ReadOnly":false}])"));
}

TEST(CreateBody, SeveralRanksHaveANetworkOfTheLaunch) {
  LaunchSpec spec = OneRank();
  spec.ranks.push_back(spec.ranks[0]);
  spec.ranks[1].rank = 1;
  EXPECT_THAT(BodyFor(spec), HasSubstr(R"("NetworkMode":"tp-d-e1-1-s0-a1-n1")"));
  EXPECT_THAT(BodyFor(spec), HasSubstr(R"("EndpointsConfig":{"tp-d-e1-1-s0-a1-n1":{"Aliases":["node0"]}})"));
  ExecutorConfig config;
  config.network = "host";
  EXPECT_THAT(BodyFor(spec, HereSite(), config), HasSubstr(R"("NetworkMode":"host")"));
  EXPECT_FALSE(CheckForContainers(spec, {}).ok()) << "two ranks of one address";
  EXPECT_TRUE(CheckForContainers(spec, config).ok());
  config.network = "lab";
  EXPECT_THAT(std::string(CheckForContainers(spec, config).message()), HasSubstr("on a network of its own"));
  for (const char* address : {"", "localhost", "10.0.0.1", "fe80::1"}) {
    spec.ranks[1].placement.address = address;
    EXPECT_FALSE(CheckForContainers(spec, {}).ok()) << address;
  }
  spec.ranks[1].placement.address = "node1";
  EXPECT_TRUE(CheckForContainers(spec, {}).ok());
}

TEST(CheckForContainers, NamesWhatAContainerCannotBeGiven) {
  LaunchSpec spec = OneRank();
  EXPECT_TRUE(CheckForContainers(spec, {}).ok());
  spec.ranks[0].env["\xff"] = "x";
  EXPECT_THAT(std::string(CheckForContainers(spec, {}).message()), HasSubstr("UTF-8"));
  spec = OneRank();
  spec.image.clear();
  EXPECT_THAT(std::string(CheckForContainers(spec, {}).message()), HasSubstr("image"));
}

TEST(DescribeRequests, MasksSecrets) {
  LaunchSpec spec = OneRank();
  spec.ranks[0].env["API_TOKEN"] = "hush-hush";
  EXPECT_THAT(DescribeRequests(spec, {}, HereSite()), Not(HasSubstr("hush-hush")));
}

TEST(ParseExecutorConfig, ReadsItsKeys) {
  const auto config = ParseExecutorConfig(
      R"({"image":"i","network":"host","user":"1:2","volumes":["a:/b",3],"image_pull_deadline":"5m",
          "storage":{"volume_name":"v","tpd_path":"/s"}})",
      "/s");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->image, "i");
  EXPECT_EQ(config->network, "host");
  EXPECT_EQ(config->user, "1:2");
  EXPECT_EQ(config->volumes, std::vector<std::string>{"a:/b"});
  EXPECT_EQ(config->volume_name, "v");
  EXPECT_EQ(config->image_pull_deadline, absl::Minutes(5));
  EXPECT_TRUE(ParseExecutorConfig("", "/s").ok());
}

TEST(ParseExecutorConfig, RefusesWhatMakesNoSense) {
  for (const char* text : {"[]", "{", "7", R"({"run_as":"owner"})", R"({"image_pull_deadline":"soon"})",
                           R"({"storage":{"tpd_path":"/elsewhere"}})"}) {
    EXPECT_FALSE(ParseExecutorConfig(text, "/s").ok()) << text;
  }
}

}  // namespace
}  // namespace tp::docker
