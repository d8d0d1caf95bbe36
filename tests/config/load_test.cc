#include "config/load.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "core/resource.h"

namespace tp::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

absl::StatusOr<Loaded> LoadServer(const std::string& text) {
  return Load({.server = {"tpd.yaml", text}, .registry = {"registry.yaml", std::string(kEmbeddedRegistryFile)}});
}

absl::StatusOr<Loaded> LoadRegistry(const std::string& text, const std::string& server = "") {
  return Load({.server = {"tpd.yaml", server}, .registry = {"registry.yaml", text}});
}

Json ConfigOf(const Loaded& loaded, const std::string& executor) {
  return Json::parse(loaded.registry.executors.at(executor).config_json);
}

// --- Defaults ---------------------------------------------------------------------------------------

TEST(Load, WithoutFilesTheEmbeddedDefaultsHold) {
  const auto loaded = LoadDirectory("");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->server.listen.text(), "127.0.0.1:7411");
  EXPECT_EQ(loaded->server.default_backend, "local");
  EXPECT_EQ(loaded->server.storage_root, "");
  const core::Registry& registry = loaded->registry;
  EXPECT_THAT(registry.series, UnorderedElementsAre(Key("cpu"), Key("h200"), Key("a100")));
  EXPECT_THAT(registry.profiles, UnorderedElementsAre(Key("cpu"), Key("h200"), Key("a100")));
  EXPECT_THAT(registry.executors, UnorderedElementsAre(Key("cpu/default"), Key("gpu/default")));
  const core::Series& h200 = registry.series.at("h200");
  EXPECT_EQ(h200.gpus_per_node, 8);
  EXPECT_TRUE(h200.virtual_cards);
  EXPECT_EQ(h200.executor, "gpu/default");
  ASSERT_EQ(h200.nodes.size(), 4u);
  EXPECT_EQ(h200.nodes[3], (core::Node{.name = "node-4", .address = "127.0.0.1"}));
  EXPECT_EQ(registry.series.at("cpu").executor, "cpu/default");
}

TEST(Load, TheDefaultsAnswerWhatTheQuickstartAsks) {
  const core::Registry registry = LoadDirectory("")->registry;
  EXPECT_EQ(core::DescribeShape(*core::ResolveShape(registry, {"h200:16"})), "h200:16 = 2 nodes x 8");
  EXPECT_EQ(core::DescribeShape(*core::ResolveShape(registry, {"h200"})), "h200:8 = 1 node x 8");
  EXPECT_EQ(core::DescribeShape(*core::ResolveShape(registry, {"a100:8"})), "a100:8 = 2 nodes x 4");
  EXPECT_EQ(core::DescribeShape(*core::ResolveShape(registry, {})), "cpu:1 = 1 node");
  EXPECT_THAT(std::string(Message(core::ResolveShape(registry, {"h20:16"}).status())), HasSubstr("did you mean h200?"));
}

TEST(Load, TheSampleServerFileSaysWhatHoldsWithoutIt) {
  EXPECT_EQ(LoadServer(std::string(kEmbeddedServerFile))->server, LoadServer("")->server);
}

TEST(Load, TheSampleFilesAreTheEmbeddedOnes) {
  const auto samples = LoadDirectory(TP_SOURCE_DIR "/config");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(*samples, *LoadDirectory(""));
}

TEST(Load, InAClusterTheDefaultBackendIsKubernetes) {
  EXPECT_EQ(LoadDirectory("", true)->registry.executors.at("gpu/default").backend, "kubernetes_job");
  EXPECT_EQ(LoadDirectory("", true)->server.default_backend, "kubernetes_job");
}

// --- Values -----------------------------------------------------------------------------------------

TEST(Load, EveryKeyOfTheServerFileArrives) {
  const auto loaded = LoadServer(R"(
server: {listen: "[::1]:0", deployment: lab2}
storage: {root: /srv/tp//}
scheduling:
  {stop_grace: 1s, pause_grace: 2s, start_timeout: 3s, user_retries: 4, infrastructure_retries: 5, retry_cooldown: 6s,
   relaunch_backoff: 7s, relaunch_backoff_max: 8s, kill_repeat: 9s, fence_repeat: 10s, absent_grace: 11s,
   absent_confirmations: 12, aging: 13s, aging_cap: 14, default_time_limit: 15s, fair_share: true,
   fair_share_half_life: 16m, min_flip: 17s, idle_after: 18s}
accounting: {timezone: Europe/Berlin}
platform: {default_backend: docker, docker: {reserved_gpu_device_ids: [2, 3]}}
jobs: {log_max_size: 3MiB, heartbeat: 1s}
)");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ServerConfig& server = loaded->server;
  EXPECT_EQ(server.listen.host, "::1");
  EXPECT_EQ(server.listen.text(), "[::1]:0");
  EXPECT_EQ(server.deployment, "lab2");
  EXPECT_EQ(server.storage_root, "/srv/tp");
  const core::Policy& policy = server.policy;
  EXPECT_THAT(
      (std::vector<absl::Duration>{policy.stop_grace, policy.pause_grace, policy.start_timeout, policy.retry_cooldown,
                                   policy.relaunch_backoff, policy.relaunch_backoff_max, policy.kill_repeat,
                                   policy.fence_repeat, policy.absent_grace, policy.aging, policy.default_time_limit,
                                   policy.fair_share_half_life, policy.min_flip, policy.idle_after}),
      ElementsAre(absl::Seconds(1), absl::Seconds(2), absl::Seconds(3), absl::Seconds(6), absl::Seconds(7),
                  absl::Seconds(8), absl::Seconds(9), absl::Seconds(10), absl::Seconds(11), absl::Seconds(13),
                  absl::Seconds(15), absl::Minutes(16), absl::Seconds(17), absl::Seconds(18)));
  EXPECT_EQ(policy.user_retries, 4);
  EXPECT_EQ(policy.infrastructure_retries, 5);
  EXPECT_EQ(policy.absent_confirmations, 12);
  EXPECT_EQ(policy.aging_cap, 14);
  EXPECT_TRUE(policy.fair_share);
  EXPECT_EQ(server.accounting_zone.name(), "Europe/Berlin");
  EXPECT_EQ(server.docker_cards.ids, (std::vector<int>{2, 3}));
  EXPECT_EQ(server.log_max_bytes, 3 << 20);
  EXPECT_EQ(server.heartbeat, absl::Seconds(1));
  EXPECT_EQ(loaded->registry.executors.at("gpu/default").backend, "docker");
}

TEST(Load, LoopbackHasManyNames) {
  for (const char* listen : {"127.0.0.1:0", "127.8.9.1:65535", "localhost:1", "\"[::1]:7411\""}) {
    EXPECT_TRUE(LoadServer(std::string("server: {listen: ") + listen + "}").ok()) << listen;
  }
  for (const char* listen : {"128.0.0.1:1", "127.evil.org:1", "127.0.0.1.evil:1", "\"[::]:1\"", "\"::1:1\"", ":1",
                             "localhost.evil:1", "127.0.0:1"}) {
    EXPECT_FALSE(LoadServer(std::string("server: {listen: ") + listen + "}").ok()) << listen;
  }
}

TEST(Load, DockerCardsInWords) {
  const auto cards = [](const char* text) {
    return LoadServer(std::string("platform: {docker: {reserved_gpu_device_ids: ") + text + "}}")
        ->server.docker_cards.kind;
  };
  EXPECT_EQ(cards("all"), DockerCards::Kind::kAll);
  EXPECT_EQ(cards("none"), DockerCards::Kind::kNone);
  EXPECT_EQ(cards("[]"), DockerCards::Kind::kList);
}

// --- Executors --------------------------------------------------------------------------------------

// Execution profiles as the platform's documentation shows them, placeholders removed.
TEST(Load, ExecutionProfilesOfTheReferenceLoadAsWritten) {
  const auto loaded = LoadServer(R"(
jobs:
  executors:
    # Allow any CPU-bound job to run anywhere
    - provider: cpu
      profile: default
      backend: kubernetes_job
    - provider: gpu
      profile: a100-pool
      backend: kubernetes_job
      config:
        node_selector:
          node-pool-name: a100-pool
    - profile: default
      backend: kubernetes_job
      provider: gpu
      config:
        storage:
          pvc_name: nemo-core-jobs-storage
        job_metadata:
          labels:
            my-custom-label: "value"
          annotations:
            example.com/annotation: "value"
        pod_metadata:
          labels:
            sidecar.istio.io/inject: "false"
        node_selector:
          kubernetes.io/arch: amd64
        tolerations:
          - key: nvidia.com/gpu
            operator: Exists
            effect: NoSchedule
        affinity:
          nodeAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
                - matchExpressions:
                    - key: highmem
                      operator: In
                      values:
                        - "true"
    - profile: default
      backend: volcano_job
      provider: gpu_distributed
      config:
        queue: default
        scheduler_name: volcano
        plugins:
          pytorch: ["--master=leader", "--worker=worker", "--port=23456"]
        max_retry: 0
  executor_defaults:
    docker:
      storage:
        volume_name: nemo-jobs-storage
    kubernetes_job:
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
      node_selector:
        kubernetes.io/arch: amd64
    volcano_job:
      storage:
        pvc_name: nemo-jobs-storage
)");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->registry.executors, UnorderedElementsAre(Key("cpu/default"), Key("gpu/a100-pool"),
                                                               Key("gpu/default"), Key("gpu_distributed/default")));
  EXPECT_EQ(ConfigOf(*loaded, "gpu/a100-pool"),
            Json::parse(R"({"node_selector":{"kubernetes.io/arch":"amd64","node-pool-name":"a100-pool"},
                            "tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}]})"));
  EXPECT_EQ(ConfigOf(*loaded, "gpu/default")["pod_metadata"]["labels"]["sidecar.istio.io/inject"], "false");
  EXPECT_EQ(ConfigOf(*loaded, "gpu_distributed/default")["max_retry"], 0);
  EXPECT_EQ(ConfigOf(*loaded, "gpu_distributed/default")["storage"]["pvc_name"], "nemo-jobs-storage");
  EXPECT_EQ(loaded->registry.executors.at("gpu_distributed/default").shared,
            (std::map<std::string, std::string>{{"queue", "\"default\""},
                                                {"storage", R"({"pvc_name":"nemo-jobs-storage"})"}}));
}

TEST(Load, DefaultsReachEveryExecutorOfTheBackendAndTheExecutorWins) {
  const auto loaded = LoadServer(R"(
platform: {default_backend: docker}
jobs:
  executors:
    - {provider: gpu, profile: own, backend: docker, config: {storage: {tpd_path: /mnt/x}}}
    - {provider: gpu, profile: other, backend: docker, config: {run_as: owner, storage: {volume_name: v2}}}
  executor_defaults:
    docker: {run_as: service, storage: {volume_name: v1}}
)");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(ConfigOf(*loaded, "gpu/own"),
            Json::parse(R"({"run_as":"service","storage":{"tpd_path":"/mnt/x","volume_name":"v1"}})"));
  EXPECT_EQ(ConfigOf(*loaded, "gpu/other"), Json::parse(R"({"run_as":"owner","storage":{"volume_name":"v2"}})"));
  EXPECT_EQ(ConfigOf(*loaded, "cpu/default"), Json::parse(R"({"run_as":"service","storage":{"volume_name":"v1"}})"));
}

TEST(Load, EveryBackendsConfigLoads) {
  const auto loaded = LoadServer(R"(
jobs:
  executor_defaults:
    local: {run_as: service}
    node: {run_as: owner, storage: {path: /srv/tp, tpd_path: /srv/tp}}
    slurm: {capacity: managed, account: lab, queue: gpu, storage: {path: /shared/tp, tpd_path: /shared/tp}}
    ray_job: {namespace: ml, capacity: managed}
    volcano_job: {enable_multi_node_networking: true}
  executors:
    - {provider: gpu, profile: s, backend: slurm}
)");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(ConfigOf(*loaded, "gpu/s")["capacity"], "managed");
  EXPECT_THAT(loaded->registry.executors.at("gpu/s").shared,
              UnorderedElementsAre(Key("account"), Key("queue"), Key("storage")));
}

// --- The registry -----------------------------------------------------------------------------------

constexpr char kRegistry[] = R"(
frameworks: {vllm: argparse, hydra-app: hydra}
series:
  h200:
    gpus_per_node: 8
    nodes: [n1, {name: n2, address: 10.0.0.2}]
    env: {NCCL_DEBUG: WARN, DEPTH: 3, EMPTY: ""}
    locked_env: {NCCL_SOCKET_IFNAME: ib0}
profiles:
  hopper:
    series: h200
    default_shape: 16
    env: {NCCL_DEBUG: INFO}
    overrides:
      vllm: {mem: 0.9, parallel: {tp: 1, pp: 1}}
    shapes:
      8: {overrides: {vllm: {parallel: {tp: 8}}, hydra-app: {x: [1, 2]}}}
      16: {env: {NCCL_DEBUG: TRACE}}
)";

TEST(Load, ShapesMergeOverTheProfile) {
  const auto loaded = LoadRegistry(kRegistry);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const core::Profile& profile = loaded->registry.profiles.at("hopper");
  EXPECT_EQ(profile.default_total, 16);
  EXPECT_EQ(profile.base.overrides.at("vllm").json, R"({"mem":0.9,"parallel":{"pp":1,"tp":1}})");
  EXPECT_EQ(profile.base.overrides.at("vllm").text, "--mem=0.9 --parallel.pp=1 --parallel.tp=1");
  EXPECT_EQ(profile.shapes.at(8).overrides.at("vllm").json, R"({"mem":0.9,"parallel":{"pp":1,"tp":8}})");
  EXPECT_EQ(profile.shapes.at(8).overrides.at("hydra-app").text, "'x=[1,2]'");
  EXPECT_EQ(profile.shapes.at(8).env.at("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(profile.shapes.at(16).env.at("NCCL_DEBUG"), "TRACE");
  EXPECT_EQ(profile.shapes.at(16).overrides, profile.base.overrides);
  const core::Series& series = loaded->registry.series.at("h200");
  EXPECT_EQ(series.nodes[0].address, "n1");
  EXPECT_EQ(series.nodes[1].address, "10.0.0.2");
  EXPECT_EQ(series.env, (std::map<std::string, std::string>{{"DEPTH", "3"}, {"EMPTY", ""}, {"NCCL_DEBUG", "WARN"}}));
}

TEST(Load, JobsWithoutProfileAlwaysHaveAPlace) {
  const auto loaded = LoadRegistry(kRegistry);
  ASSERT_TRUE(loaded.ok());
  const auto shape = core::ResolveShape(loaded->registry, {});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->executor, "cpu/default");
  EXPECT_EQ(loaded->registry.series.at("cpu").nodes.size(), 1u);
  const auto kubernetes = LoadRegistry(kRegistry, "platform: {default_backend: kubernetes_job}");
  EXPECT_TRUE(core::ResolveShape(kubernetes->registry, {}).ok());
  EXPECT_TRUE(kubernetes->registry.series.at("cpu").nodes.empty());
}

TEST(Load, WhereOnlyNamedMachinesRunJobsNoneIsInvented) {
  const auto loaded = LoadRegistry(kRegistry, "platform: {default_backend: node}");
  ASSERT_TRUE(loaded.ok());
  EXPECT_FALSE(loaded->registry.series.contains("cpu"));
  EXPECT_THAT(std::string(Message(core::ResolveShape(loaded->registry, {}).status())),
              HasSubstr("without --profile: there is no profile 'cpu'"));
}

TEST(Load, ASlurmSeriesWithoutConstraintLoadsAndIsRefusedAtSubmission) {
  const auto loaded = LoadRegistry("series: {s: {gpus_per_node: 8}}\nprofiles: {s: {series: s, default_shape: 8}}",
                                   "platform: {default_backend: slurm}");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(std::string(Message(core::ResolveShape(loaded->registry, {"s"}).status())), HasSubstr("`constraint`"));
}

TEST(Load, ANodeMayBelongToSeveralSeries) {
  EXPECT_TRUE(LoadRegistry("series:\n  a: {gpus_per_node: 8, nodes: [n1]}\n  b: {gpus_per_node: 8, nodes: [n1]}\n"
                           "  c: {gpus_per_node: 0, nodes: [n1]}\n")
                  .ok());
}

TEST(Load, ProblemsOfBothFilesAreToldTogether) {
  const auto loaded = Load({.server = {"tpd.yaml", "a: 1\n"}, .registry = {"registry.yaml", "b: 1\n"}});
  EXPECT_EQ(Message(loaded.status()),
            "tpd.yaml:1:1: unknown key 'a' in tpd.yaml; there are server, storage, snapshots, scheduling, quotas, "
            "notify, accounting, platform, backends, jobs\n"
            "registry.yaml:1:1: unknown key 'b' in registry.yaml; there are frameworks, series, profiles, recipes");
}

// --- Directories ------------------------------------------------------------------------------------

class LoadFromDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tp_config_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ + "/" + name) << text; }

  std::string directory_;
};

TEST_F(LoadFromDisk, AMissingFileIsTheEmbeddedOne) {
  Write("tpd.yaml", "server: {deployment: mine}\n");
  const auto loaded = LoadDirectory(directory_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->server.deployment, "mine");
  EXPECT_EQ(loaded->registry, LoadDirectory("")->registry);
}

TEST_F(LoadFromDisk, ProblemsNameThePathOfTheFile) {
  Write("registry.yaml", "serie: {}\n");
  EXPECT_EQ(Message(LoadDirectory(directory_).status()),
            directory_ + "/registry.yaml:1:1: unknown key 'serie' in registry.yaml; did you mean series?");
}

TEST_F(LoadFromDisk, FollowsLinksAsConfigMapsAreMounted) {
  Write("..data.yaml", "server: {deployment: linked}\n");
  std::filesystem::create_symlink(directory_ + "/..data.yaml", directory_ + "/tpd.yaml");
  EXPECT_EQ(LoadDirectory(directory_)->server.deployment, "linked");
}

TEST_F(LoadFromDisk, RefusesWhatIsNoFileOrDirectory) {
  std::filesystem::create_directory(directory_ + "/tpd.yaml");
  EXPECT_EQ(Message(LoadDirectory(directory_).status()), directory_ + "/tpd.yaml is not a file");
  std::filesystem::remove(directory_ + "/tpd.yaml");
  ASSERT_EQ(mkfifo((directory_ + "/tpd.yaml").c_str(), 0600), 0);  // would block a reader for ever
  EXPECT_EQ(Message(LoadDirectory(directory_).status()), directory_ + "/tpd.yaml is not a file");
  EXPECT_EQ(LoadDirectory(directory_ + "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LoadFromDisk, AFileOfAnySizeIsRefusedAndNotReadWhole) {
  std::ofstream file(directory_ + "/tpd.yaml");
  file.close();
  std::filesystem::resize_file(directory_ + "/tpd.yaml", uintmax_t{1} << 40);
  EXPECT_THAT(std::string(Message(LoadDirectory(directory_).status())), HasSubstr("is refused"));
}

}  // namespace
}  // namespace tp::config
