// Files that use every key, and what a reload between two configurations is told to be.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/difference.h"
#include "config/load.h"
#include "config/registry_file.h"
#include "config/summary.h"

namespace tp::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Good(const std::string& name) {
  std::ifstream stream(TP_SOURCE_DIR "/tests/config/good/" + name, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << name;
  return {std::istreambuf_iterator<char>(stream), {}};
}

Loaded LoadGood(const std::string& server, const std::string& registry) {
  const auto loaded = Load({.server = {"tpd.yaml", server}, .registry = {"registry.yaml", registry}});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.value_or(Loaded());
}

Loaded LoadAll() { return LoadGood(Good("all_tpd.yaml"), Good("all_registry.yaml")); }

// Every `key:` of a record and of the records in it; records with free keys count by their own.
void ExpectAllKeysIn(const decode::RecordDoc& doc, const std::string& text) {
  for (const decode::FieldDoc& field : doc.fields) {
    EXPECT_NE(text.find(field.key + ":"), std::string::npos) << doc.name << ": " << field.key;
    if (field.record && field.key != "executor_defaults") ExpectAllKeysIn(*field.record, text);
  }
}

TEST(GoodFiles, HoldEveryKey) {
  ExpectAllKeysIn(*ServerFileType().record, Good("all_tpd.yaml"));
  ExpectAllKeysIn(*RegistryFileType().record, Good("all_registry.yaml"));
}

TEST(GoodFiles, SeriesSayWhatEachCardBrings) {
  const core::Registry registry = LoadAll().registry;
  const RankLimits& share = registry.series.at("h200").per_card;
  EXPECT_EQ(share.cpus, 12);
  EXPECT_EQ(share.memory_bytes, int64_t{180} << 30);
  EXPECT_EQ(share.shm_bytes, int64_t{64} << 30);
  EXPECT_EQ(share.memlock_bytes, kUnlimited);
  EXPECT_EQ(registry.series.at("slurm").per_card, RankLimits());
  EXPECT_EQ(registry.series.at("pods").node_selector.at("pool"), "h200");
}

TEST(GoodFiles, WindowsAreListedByDay) {
  const core::Registry registry = LoadAll().registry;
  ASSERT_EQ(registry.series.at("h200").windows.size(), 1u);
  const core::Window& window = registry.series.at("h200").windows[0];
  EXPECT_EQ(window.zone.name(), "Europe/Berlin");
  EXPECT_THAT(window.profiles, ElementsAre("night"));
  EXPECT_EQ(window.grace, absl::Minutes(10));
  EXPECT_EQ(window.min_remaining, absl::Hours(1));
  ASSERT_EQ(window.open.size(), 7u);
  EXPECT_EQ(window.open[0], (core::OpenInterval{.weekday = 0, .from_minute = 22 * 60, .to_minute = 7 * 60}));
  EXPECT_EQ(window.open[6], (core::OpenInterval{.weekday = 6, .from_minute = 0, .to_minute = 24 * 60}));
}

TEST(GoodFiles, TheReferencesExamplesLoadAsWritten) {
  const core::Registry registry = LoadGood(Good("reference_tpd.yaml"), "").registry;
  EXPECT_EQ(registry.executors.at("gpu/h200-pool").config_json,
            R"({"node_selector":{"kubernetes.io/arch":"amd64","node-pool-name":"h200-pool"},)"
            R"("tolerations":[{"effect":"NoSchedule","key":"nvidia.com/gpu","operator":"Exists"}]})");
  EXPECT_EQ(registry.executors.at("cpu/default").backend, "kubernetes_job");
  EXPECT_EQ(registry.executors.at("gpu_distributed/default").backend, "volcano_job");
}

TEST(GoodFiles, SnapshotLimitsReachTheServer) {
  EXPECT_EQ(LoadAll().server.snapshots.max_bytes, int64_t{3} << 30);
  EXPECT_EQ(LoadAll().server.snapshots.max_user_bytes, int64_t{90} << 30);
}

TEST(GoodFiles, QuotasReachTheRegistry) {
  core::QuotaLimits limits;
  limits.gpus = 16;
  limits.series_gpus = {{"h200", 8}, {"slurm", 0}};
  limits.jobs = 20;
  limits.gpu_hours = 1000;
  limits.storage_bytes = int64_t{2} << 40;
  EXPECT_EQ(LoadAll().registry.quota_defaults, limits);
  EXPECT_TRUE(LoadGood("", "").registry.quota_defaults.empty());
}

TEST(GoodFiles, ReceiversReachTheRegistry) {
  const core::Receivers receivers = LoadAll().registry.receivers;
  EXPECT_EQ(receivers.webhooks.at("chat"),
            (core::Webhook{.url = "https://chat.example.org:8443/hooks/x?y=z",
                           .secret_file = "/etc/tp/chat.secret",
                           .on = {core::NoticeEvent::kFailed, core::NoticeEvent::kPaused}}));
  EXPECT_TRUE(receivers.webhooks.at("here").on.empty());
  EXPECT_TRUE(receivers.webhooks.contains("plain"));
  EXPECT_THAT(receivers.mail->command, ElementsAre("/usr/sbin/sendmail", "-t", "-i"));
  EXPECT_EQ(LoadGood("", "").registry.receivers, core::Receivers());
}

TEST(GoodFiles, TheSummaryIsALineOfEachKind) {
  EXPECT_EQ(Summary(LoadGood("", "series:\n  a: {gpus_per_node: 8, nodes: [n1, n2]}\n")),
            "2 series: a (2 x 8 cards), cpu (1 x cpu)\n"
            "1 profiles: cpu -> cpu\n"
            "2 executors: cpu/default (local), gpu/default (local)\n");
}

// --- Differences ------------------------------------------------------------------------------------

std::vector<std::string> ChangesBetween(const core::Registry& from, const core::Registry& to) {
  std::vector<std::string> texts;
  for (const Change& change : Differences(from, to)) texts.push_back(change.text());
  return texts;
}

TEST(Differences, AreNamedByKind) {
  const std::string base = "series:\n  a: {gpus_per_node: 8, nodes: [n1]}\n";
  const core::Registry from = LoadGood("", base + "  gone: {gpus_per_node: 1, nodes: [n2]}\n").registry;
  const core::Registry to =
      LoadGood(
          "jobs: {executors: [{provider: gpu, profile: b, backend: local}]}",
          "frameworks: {vllm: env}\nseries:\n  a: {gpus_per_node: 8, nodes: [n1, n3]}\nprofiles:\n  p: {series: a}\n")
          .registry;
  EXPECT_THAT(ChangesBetween(from, to), ElementsAre("series a changed", "series gone removed", "profile p added",
                                                    "executor gpu/b added", "framework vllm added"));
}

TEST(Differences, QuotasAreNamedByKey) {
  const core::Registry from = LoadGood("quotas: {gpus: 1, jobs: 2, series: {cpu: 3}}", "").registry;
  const core::Registry to = LoadGood("quotas: {gpus: 1, jobs: 3, storage: 0B}", "").registry;
  EXPECT_THAT(ChangesBetween(from, to),
              ElementsAre("quota jobs changed", "quota storage added", "quota series.cpu removed"));
}

TEST(Differences, ReceiversAreNamed) {
  core::Registry later = LoadAll().registry;
  later.receivers.webhooks["chat"].url += "1";
  later.receivers.webhooks.erase("here");
  later.receivers.mail.reset();
  EXPECT_THAT(ChangesBetween(LoadAll().registry, later),
              ElementsAre("receiver chat changed", "receiver here removed", "receiver mail removed"));
}

TEST(Differences, AVersionIsNone) {
  core::Registry later = LoadAll().registry;
  later.version = 7;
  EXPECT_THAT(ChangesBetween(LoadAll().registry, later), IsEmpty());
}

// all_tpd.yaml sets every key to another value than its default.
TEST(Differences, EveryKeyOutsideTheRegistryNeedsARestart) {
  std::vector<std::string> leaves;
  const std::function<void(const decode::RecordDoc&, const std::string&)> walk = [&](const auto& doc,
                                                                                     const auto& path) {
    for (const decode::FieldDoc& field : doc.fields) {
      const std::string key = path.empty() ? field.key : path + "." + field.key;
      if (key == "quotas" || key == "notify" || key == "jobs.executors" || key == "jobs.executor_defaults" ||
          key == "platform.default_backend")
        continue;
      field.record ? walk(*field.record, key) : leaves.push_back(key);
    }
  };
  walk(*ServerFileType().record, "");
  std::vector<std::string> keys = RestartKeys(ServerConfig(), LoadAll().server);
  std::sort(keys.begin(), keys.end());
  std::sort(leaves.begin(), leaves.end());
  EXPECT_EQ(keys, leaves);
  EXPECT_THAT(RestartKeys(LoadAll().server, LoadAll().server), IsEmpty());
}

}  // namespace
}  // namespace tp::config
