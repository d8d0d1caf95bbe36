// Faulty files and exactly what is said about them: file, line, column, sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "config/load.h"

namespace tp::config {
namespace {

struct Faulty {
  std::string name;
  std::string text;
  std::string said;
};

std::string CaseName(const testing::TestParamInfo<Faulty>& faulty) { return faulty.param.name; }

// --- tpd.yaml ---------------------------------------------------------------------------------------

class FaultyServerFile : public testing::TestWithParam<Faulty> {};

TEST_P(FaultyServerFile, IsRefused) {
  const auto loaded = Load(
      {.server = {"tpd.yaml", GetParam().text}, .registry = {"registry.yaml", std::string(kEmbeddedRegistryFile)}});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(loaded.status()), GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, FaultyServerFile,
    testing::Values(
        Faulty{"NotClosed", "server: {listen: 1\n", "tpd.yaml:2:1: a '{' is never closed"},
        Faulty{"Indentation", "server:\n  deployment: a\n   listen: b\n",
               "tpd.yaml:3:10: a ':' is out of place: check the indentation here and above, and put text with ': ' in "
               "quotes"},
        Faulty{"QuoteNeverClosed", "server:\n  deployment: 'tp\n", "tpd.yaml:2:15: this quote is never closed"},
        Faulty{"UnknownEscape", "server:\n  deployment: \"\\q\"\n",
               "tpd.yaml:2:18: this is not YAML: unknown escape character: q"},
        Faulty{"Tab", "server:\n\tdeployment: tp\n", "tpd.yaml:2:12: this line is indented with a tab; use spaces"},
        Faulty{"DuplicateKey", "server:\n  deployment: a\n  deployment: b\n",
               "tpd.yaml:3:3: key 'deployment' is here twice; first on line 2"},
        Faulty{"DuplicateSection", "server: {}\njobs: {}\nserver: {}\n",
               "tpd.yaml:3:1: key 'server' is here twice; first on line 1"},
        Faulty{"Anchor", "server: &s\n  deployment: a\n",
               "tpd.yaml:1:9: anchors (&name) are not supported; write the value out where it is needed"},
        Faulty{"Alias", "jobs: {}\nserver: *s\n",
               "tpd.yaml:2:9: aliases (*name) are not supported; write the value out"},
        Faulty{"MergeKey", "server:\n  <<: {deployment: a}\n", "tpd.yaml:2:3: merge keys (<<) are not supported"},
        Faulty{"Tag", "server:\n  deployment: !!str tp\n",
               "tpd.yaml:2:15: tags (!name) are not supported; leave it out"},
        Faulty{"KeyIsAList", "server:\n  ? [a]\n  : b\n", "tpd.yaml:2:5: a key is plain text, not a list or a mapping"},
        Faulty{"KeyIsMissing", "server:\n  : b\n", "tpd.yaml:2:3: a key is missing here"},
        Faulty{"TwoDocuments", "server: {}\n---\njobs: {}\n",
               "tpd.yaml:2:1: a second document begins here; a file holds one"},
        Faulty{"NotUtf8", "server:\n  deployment: \"\xff\"\n", "tpd.yaml:2:16: a byte that is not UTF-8 text"},
        Faulty{"Nul", std::string("server:\n  a\0b: c\n", 17), "tpd.yaml:2:4: a byte that is not UTF-8 text"},
        Faulty{"NotAMapping", "- server\n", "tpd.yaml:1:1: expected a mapping (tpd.yaml), found a list"},
        Faulty{"JustText", "hello\n", "tpd.yaml:1:1: expected a mapping (tpd.yaml), found 'hello'"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Server, FaultyServerFile,
    testing::Values(
        Faulty{"UnknownSection", "sever:\n  listen: 127.0.0.1:1\n",
               "tpd.yaml:1:1: unknown key 'sever' in tpd.yaml; did you mean server?"},
        Faulty{"UnknownKey", "server:\n  listn: 127.0.0.1:1\n",
               "tpd.yaml:2:3: unknown key 'listn' in server; did you mean listen?"},
        Faulty{"UnknownKeyFarOff", "storage:\n  bucket: x\n",
               "tpd.yaml:2:3: unknown key 'bucket' in storage; there is only root"},
        Faulty{"SectionWithoutValue", "server:\n# nothing\njobs: {}\n",
               "tpd.yaml:1:1: key 'server' has no value; give one or leave the key out"},
        Faulty{"SectionIsAList", "server: [a]\n", "tpd.yaml:1:9: expected a mapping (server), found a list"},
        Faulty{"ListenEverywhere", "server:\n  listen: 0.0.0.0:7411\n",
               "tpd.yaml:2:11: '0.0.0.0' is not on the loopback interface: without TLS anybody on the network could "
               "read tokens and run jobs; listen on 127.0.0.1 and reach it through ssh -L"},
        Faulty{"ListenOnAName", "server:\n  listen: gpu1.example.org:7411\n",
               "tpd.yaml:2:11: 'gpu1.example.org' is not on the loopback interface: without TLS anybody on the network "
               "could read tokens and run jobs; listen on 127.0.0.1 and reach it through ssh -L"},
        Faulty{"ListenWithoutPort", "server:\n  listen: 127.0.0.1\n",
               "tpd.yaml:2:11: expected an address and a port such as 127.0.0.1:7411, found '127.0.0.1'"},
        Faulty{"ListenPortTooLarge", "server:\n  listen: 127.0.0.1:65536\n",
               "tpd.yaml:2:11: expected an address and a port such as 127.0.0.1:7411, found '127.0.0.1:65536'"},
        Faulty{"DeploymentTooLong", "server:\n  deployment: production1\n",
               "tpd.yaml:2:15: deployment name 'production1' is not usable: write a letter and up to nine of [a-z0-9]"},
        Faulty{"DeploymentIsANumber", "server:\n  deployment: 7\n",
               "tpd.yaml:2:15: expected text, found the number 7; if it is meant as text, put it in quotes"},
        Faulty{"RelativeRoot", "storage:\n  root: runs\n", "tpd.yaml:2:9: 'runs' is not an absolute path"},
        Faulty{"RootWithDots", "storage: {root: /srv/../etc}\n",
               "tpd.yaml:1:17: '/srv/../etc' holds . or ..; write the path out"},
        Faulty{"RootIsTheRoot", "storage: {root: //}\n",
               "tpd.yaml:1:17: the root directory itself cannot be storage.root"},
        Faulty{
            "DurationWithoutUnit", "scheduling:\n  stop_grace: 30\n",
            "tpd.yaml:2:15: '30' is not a duration: write numbers with units d, h, m, s or ms, such as 30s or 2h30m"},
        Faulty{"DurationIsAList", "scheduling:\n  stop_grace: [30s]\n",
               "tpd.yaml:2:15: expected a duration such as 30s or 2h30m, found a list"},
        Faulty{"DurationTooLong", "scheduling:\n  stop_grace: 2d\n",
               "tpd.yaml:2:15: expected a duration from 0s to 1d, found '2d'"},
        Faulty{"RepeatTooShort", "scheduling:\n  kill_repeat: 0s\n",
               "tpd.yaml:2:16: expected a duration from 100ms to 1h, found '0s'"},
        Faulty{"NegativeRetries", "scheduling:\n  user_retries: -1\n",
               "tpd.yaml:2:17: expected a whole number from 0 to 1000, found the number -1"},
        Faulty{"RetriesAreText", "scheduling:\n  user_retries: three\n",
               "tpd.yaml:2:17: expected a whole number from 0 to 1000, found 'three'"},
        Faulty{"RetriesAreQuoted", "scheduling:\n  user_retries: \"3\"\n",
               "tpd.yaml:2:17: expected a whole number from 0 to 1000, found '3'"},
        Faulty{"RetriesAreAFraction", "scheduling:\n  user_retries: 1.5\n",
               "tpd.yaml:2:17: expected a whole number from 0 to 1000, found the number 1.5"},
        Faulty{"RetriesOverflow", "scheduling:\n  user_retries: 99999999999999999999\n",
               "tpd.yaml:2:17: expected a whole number from 0 to 1000, found the number 99999999999999999999"},
        Faulty{"BackoffAboveItsMaximum", "jobs: {}\nscheduling:\n  relaunch_backoff: 20m\n",
               "tpd.yaml:3:3: relaunch_backoff (20m) is longer than relaunch_backoff_max (10m)"},
        Faulty{"OneSightingIsNotEnough", "scheduling:\n  absent_confirmations: 1\n",
               "tpd.yaml:2:25: expected a whole number from 2 to 100, found the number 1"},
        Faulty{"UnknownZone", "accounting:\n  timezone: Europe/Berlln\n",
               "tpd.yaml:2:13: there is no time zone 'Europe/Berlln'; write one such as Europe/Berlin or UTC, and see "
               "that the package tzdata is installed"},
        Faulty{"ZoneIsAPath", "accounting:\n  timezone: ../../etc/passwd\n",
               "tpd.yaml:2:13: there is no time zone '../../etc/passwd'; write one such as Europe/Berlin or UTC, and "
               "see that the package tzdata is installed"},
        Faulty{
            "LogSizeWithoutUnit", "jobs:\n  log_max_size: 1000000\n",
            "tpd.yaml:2:17: expected a size from 64KiB to 16TiB in B, KiB, MiB, GiB or TiB, found the number 1000000"},
        Faulty{"LogSizeOverflow", "jobs:\n  log_max_size: 9223372036854775807TiB\n",
               "tpd.yaml:2:17: expected a size from 64KiB to 16TiB in B, KiB, MiB, GiB or TiB, found "
               "'9223372036854775807TiB'"},
        Faulty{"SeveralAtOnce", "server:\n  deployment: A\n  listn: x\njobs:\n  heartbeat: 0s\n",
               "tpd.yaml:2:15: deployment name 'A' is not usable: write a letter and up to nine of "
               "[a-z0-9]\ntpd.yaml:3:3: unknown key 'listn' in server; did you mean listen?\ntpd.yaml:5:14: expected a "
               "duration from 100ms to 5m, found '0s'"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Executors, FaultyServerFile,
    testing::Values(
        Faulty{"UnknownBackend", "platform:\n  default_backend: kubernetes\n",
               "tpd.yaml:2:20: expected one of local, node, docker, slurm, kubernetes_job, volcano_job, ray_job (did "
               "you mean kubernetes_job?), found 'kubernetes'"},
        Faulty{"UnknownProvider", "jobs:\n  executors:\n    - {provider: tpu, profile: a, backend: local}\n",
               "tpd.yaml:3:18: expected one of cpu, gpu, gpu_distributed (did you mean cpu?), found 'tpu'"},
        Faulty{"BackendIsMissing", "jobs:\n  executors:\n    - provider: gpu\n      profile: a\n",
               "tpd.yaml:3:7: an executor needs the key 'backend'"},
        Faulty{"ExecutorTwice",
               "jobs:\n  executors:\n    - {provider: gpu, profile: a, backend: local}\n"
               "    - {provider: gpu, profile: a, backend: slurm}\n",
               "tpd.yaml:4:7: executor gpu/a is here twice"},
        Faulty{
            "UnknownConfigKey",
            "jobs:\n  executors:\n    - provider: gpu\n      profile: a\n      backend: kubernetes_job\n      config:\n"
            "        node_selectors: {a: b}\n",
            "tpd.yaml:7:9: unknown key 'node_selectors' in config of kubernetes_job; did you mean node_selector?"},
        Faulty{"ConfigOfAnotherBackend",
               "jobs:\n  executors:\n    - provider: gpu\n      profile: a\n      backend: docker\n      config:\n"
               "        storage: {pvc_name: b}\n",
               "tpd.yaml:7:19: unknown key 'pvc_name' in storage of docker; there are volume_name, tpd_path"},
        Faulty{
            "LabelIsABoolean",
            "jobs:\n  executor_defaults:\n    kubernetes_job:\n      pod_metadata:\n        labels: {inject: false}\n",
            "tpd.yaml:5:26: expected text, found the boolean false; if it is meant as text, put it in quotes"},
        Faulty{"TolerationsAreAMapping",
               "jobs:\n  executor_defaults:\n    kubernetes_job:\n      tolerations: {key: a}\n",
               "tpd.yaml:4:20: expected a list, found a mapping"},
        Faulty{"AnEngineThatRetries", "jobs:\n  executor_defaults:\n    volcano_job:\n      max_retry: 3\n",
               "tpd.yaml:4:18: expected 0, found the number 3"},
        Faulty{"DefaultsOfNoBackend", "jobs:\n  executor_defaults:\n    dokcer: {}\n",
               "tpd.yaml:3:5: expected one of local, node, docker, slurm, kubernetes_job, volcano_job, ray_job (did "
               "you mean docker?), found 'dokcer'"},
        Faulty{"RunAsRoot", "jobs:\n  executor_defaults:\n    local:\n      run_as: root\n",
               "tpd.yaml:4:15: expected one of service, owner, found 'root'"},
        Faulty{"CardTwice", "platform:\n  docker:\n    reserved_gpu_device_ids: [0, 1, 0]\n",
               "tpd.yaml:3:31: card 0 is here twice"},
        Faulty{"CardsInWords", "platform:\n  docker:\n    reserved_gpu_device_ids: some\n",
               "tpd.yaml:3:30: expected all, none, or a list of card indices, found 'some'"}),
    CaseName);

// --- registry.yaml ----------------------------------------------------------------------------------

class FaultyRegistryFile : public testing::TestWithParam<Faulty> {};

TEST_P(FaultyRegistryFile, IsRefused) {
  const std::string server =
      "jobs:\n  executors:\n    - {provider: gpu, profile: slurm, backend: slurm}\n"
      "    - {provider: gpu, profile: node, backend: node}\n";
  const auto loaded = Load({.server = {"tpd.yaml", server}, .registry = {"registry.yaml", GetParam().text}});
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(loaded.status()), GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    Series, FaultyRegistryFile,
    testing::Values(
        Faulty{"WithoutCards", "series:\n  h200:\n    nodes: [n1]\n",
               "registry.yaml:3:5: a series needs the key 'gpus_per_node'"},
        Faulty{"UnknownKey", "series:\n  h200:\n    gpu_per_node: 8\n    nodes: [n1]\n",
               "registry.yaml:3:5: unknown key 'gpu_per_node' in a series; did you mean "
               "gpus_per_node?\nregistry.yaml:3:5: a series needs the key 'gpus_per_node'"},
        Faulty{"TooManyCards", "series:\n  h200: {gpus_per_node: 65, nodes: [n1]}\n",
               "registry.yaml:2:25: expected a whole number from 0 to 64, found the number 65"},
        Faulty{"NameInCapitals", "series:\n  H200: {gpus_per_node: 8, nodes: [n1]}\n",
               "registry.yaml:2:3: 'H200' is not a name: write up to 63 of [a-z0-9._-], a letter or digit first"},
        Faulty{"WithoutNodes", "series:\n  h200: {gpus_per_node: 8}\n",
               "registry.yaml:2:3: series h200 runs on backend local, which needs its `nodes`"},
        Faulty{"NodesAreANumber", "series:\n  h200: {gpus_per_node: 8, nodes: 4}\n",
               "registry.yaml:2:35: expected a list, found the number 4"},
        Faulty{"NodeTwice", "series:\n  h200:\n    gpus_per_node: 8\n    nodes:\n      - n1\n      - n1\n",
               "registry.yaml:6:9: node n1 is here twice"},
        Faulty{"NodeWithTwoAddresses",
               "series:\n  a: {gpus_per_node: 8, nodes: [n1]}\n  b:\n    gpus_per_node: 8\n    nodes:\n"
               "      - {name: n1, address: 10.0.0.1}\n",
               "registry.yaml:6:16: node n1 has the address 10.0.0.1 here and n1 in series a"},
        Faulty{"NodeWithTwoSizes",
               "series:\n  a: {gpus_per_node: 8, nodes: [n1]}\n  b: {gpus_per_node: 4, nodes: [n1]}\n",
               "registry.yaml:3:33: node n1 has 4 cards here and 8 in series a"},
        Faulty{"NodeNameIsAPath", "series:\n  a: {gpus_per_node: 8, nodes: [../n1]}\n",
               "registry.yaml:2:33: '../n1' is not a name: write up to 63 of [a-z0-9._-], a letter or digit first"},
        Faulty{"AddressWithSpaces",
               "series:\n  a: {gpus_per_node: 8, nodes: [{name: n1, address: \"-o ProxyCommand=x\"}]}\n",
               "registry.yaml:2:53: '-o ProxyCommand=x' is no host name or address"},
        Faulty{"BooleanInOldYaml", "series:\n  a: {gpus_per_node: 8, nodes: [n1], virtual_cards: yes}\n",
               "registry.yaml:2:53: expected true or false, found 'yes'"},
        Faulty{"DanglingExecutor", "series:\n  a: {gpus_per_node: 8, nodes: [n1], executor: gpu/defualt}\n",
               "registry.yaml:2:48: unknown executor 'gpu/defualt'; did you mean gpu/default?"},
        Faulty{"DanglingDistributed",
               "series:\n  a:\n    gpus_per_node: 8\n    nodes: [n1]\n    executor_distributed: mpi/x\n",
               "registry.yaml:5:27: unknown executor 'mpi/x'; there are cpu/default, gpu/default, gpu/node, gpu/slurm"},
        Faulty{"CpuExecutorForCards", "series:\n  a: {gpus_per_node: 8, nodes: [n1], executor: cpu/default}\n",
               "registry.yaml:2:48: executor cpu/default is for cpu jobs, and series a has cards"},
        Faulty{"ReservedVariable",
               "series:\n  a:\n    gpus_per_node: 8\n    nodes: [n1]\n    env:\n      TP_RUN_ID: x\n",
               "registry.yaml:6:7: TP_RUN_ID: names that begin with TP_ belong to tp"},
        Faulty{
            "NoVariableName", "series:\n  a: {gpus_per_node: 8, nodes: [n1], env: {NCCL-DEBUG: x}}\n",
            "registry.yaml:2:44: 'NCCL-DEBUG' is not a variable's name: write letters, digits and _, no digit first"},
        Faulty{"VariableWithoutValue", "series:\n  a:\n    gpus_per_node: 8\n    nodes: [n1]\n    env:\n      A:\n",
               "registry.yaml:6:7: expected text, found nothing; write \"\" for an empty one"},
        Faulty{"VariableIsAList", "series:\n  a:\n    gpus_per_node: 8\n    nodes: [n1]\n    env:\n      A: [1]\n",
               "registry.yaml:6:10: expected text, found a list"}),
    CaseName);

constexpr char kSeries[] =
    "series:\n"
    "  a: {gpus_per_node: 8, nodes: [n1, n2], locked_env: {NET: ib0}}\n"
    "  wide: {gpus_per_node: 8, nodes: [m1, m2, m3, m4, m5, m6, m7, m8, m9], executor: gpu/node}\n"
    "frameworks: {vllm: argparse, nccl: env}\n"
    "profiles:\n";

INSTANTIATE_TEST_SUITE_P(
    Profiles, FaultyRegistryFile,
    testing::Values(
        Faulty{"WithoutSeries", std::string(kSeries) + "  p: {default_shape: 8}\n",
               "registry.yaml:6:6: a profile needs the key 'series'"},
        Faulty{"DanglingSeries", std::string(kSeries) + "  p:\n    series: aa\n",
               "registry.yaml:7:13: unknown series 'aa'; did you mean a?"},
        Faulty{"DefaultOnBrokenNodes", std::string(kSeries) + "  p:\n    series: a\n    default_shape: 12\n",
               "registry.yaml:8:20: this total cannot be: --profile p:12: series a has 8 cards a node, and above that "
               "a total is a multiple of it: 8 or 16"},
        Faulty{"DefaultAboveTheSeries", std::string(kSeries) + "  p:\n    series: a\n    default_shape: 24\n",
               "registry.yaml:8:20: this total cannot be: --profile p:24: series a has only 2 nodes x 8 = 16 cards"},
        Faulty{"DefaultAboveTheBackend", std::string(kSeries) + "  p:\n    series: wide\n    default_shape: 72\n",
               "registry.yaml:8:20: this total cannot be: --profile p:72: 9 nodes, and backend node takes at most 8"},
        Faulty{"DefaultIsZero", std::string(kSeries) + "  p: {series: a, default_shape: 0}\n",
               "registry.yaml:6:33: expected a whole number from 1 to 1000000, found the number 0"},
        Faulty{"ShapeOnBrokenNodes", std::string(kSeries) + "  p:\n    series: a\n    shapes:\n      12: {}\n",
               "registry.yaml:9:7: this total cannot be: --profile p:12: series a has 8 cards a node, and above that a "
               "total is a multiple of it: 8 or 16"},
        Faulty{"ShapeIsAWord", std::string(kSeries) + "  p: {series: a, shapes: {eight: {}}}\n",
               "registry.yaml:6:27: expected a whole number from 1 to 1000000, found 'eight'"},
        Faulty{"ShapeTwice", std::string(kSeries) + "  p:\n    series: a\n    shapes:\n      8: {}\n      8: {}\n",
               "registry.yaml:10:7: key '8' is here twice; first on line 9"},
        Faulty{"LockedVariable", std::string(kSeries) + "  p: {series: a, env: {NET: eth0}}\n",
               "registry.yaml:6:24: series a locks NET; a profile cannot set it"},
        Faulty{"LockedVariableInAShape",
               std::string(kSeries) + "  p:\n    series: a\n    shapes:\n      8: {env: {NET: eth0}}\n",
               "registry.yaml:9:17: series a locks NET; a profile cannot set it"},
        Faulty{"UnknownFramework", std::string(kSeries) + "  p: {series: a, overrides: {vlm: {x: 1}}}\n",
               "registry.yaml:6:30: unknown framework 'vlm'; did you mean vllm?"},
        Faulty{"OverridesAreAList", std::string(kSeries) + "  p: {series: a, overrides: {vllm: [x]}}\n",
               "registry.yaml:6:36: expected a mapping, found a list"},
        Faulty{"OverrideTheStyleCannotSay",
               std::string(kSeries) + "  p:\n    series: a\n    overrides:\n      nccl: {A: {B: 1}}\n",
               "registry.yaml:9:7: overrides of nccl: 'A' is not a scalar, which the style env needs"},
        Faulty{"OverrideInOldYaml",
               std::string(kSeries) + "  p:\n    series: a\n    overrides:\n      vllm: {x: off}\n",
               "registry.yaml:9:17: 'off' means different things to different readers; write true, false or a plain "
               "decimal number, or put it in quotes"},
        Faulty{"DefaultProfileWithCards", std::string(kSeries) + "  cpu: {series: a}\n",
               "registry.yaml:6:17: profile cpu is what jobs without --profile get: its series has no cards, and a has "
               "8 a node"},
        Faulty{"UnknownStyle", "frameworks:\n  vllm: argprase\n",
               "registry.yaml:2:9: expected one of argparse, hydra, env (did you mean argparse?), found 'argprase'"},
        Faulty{"FrameworksThatShareAVariable", "frameworks:\n  ray-train: env\n  ray_train: hydra\n",
               "registry.yaml:3:3: frameworks ray-train and ray_train would share the variable TP_OVERRIDES_RAY_TRAIN; "
               "rename one"}),
    CaseName);

}  // namespace
}  // namespace tp::config
