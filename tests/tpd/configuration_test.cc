#include "tpd/configuration.h"

#include <gmock/gmock.h>

#include "base/status.h"
#include "config_directory.h"

namespace tp::tpd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigurationTest : public ConfigDirectory {
 protected:
  void SetUp() override {
    ConfigDirectory::SetUp();
    auto opened = Configuration::Open(config_.string());
    ASSERT_TRUE(opened.ok()) << opened.status();
    configuration_ = *std::move(opened);
  }

  absl::Status Reload() {
    return configuration_->Reload([this](const api::ReloadPlan& plan) { handed_over_.push_back(plan); });
  }
  int CardsInForce() const { return configuration_->registry()->series.at("a").gpus_per_node; }

  std::unique_ptr<Configuration> configuration_;
  std::vector<api::ReloadPlan> handed_over_;
};

TEST_F(ConfigurationTest, AGoodFileComesIntoForceUnderTheNextVersion) {
  EXPECT_EQ(configuration_->registry()->version, 1);
  Write("registry.yaml", Registry(2));
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(configuration_->registry()->version, 2);
  EXPECT_EQ(CardsInForce(), 2);
  ASSERT_EQ(handed_over_.size(), 1u);
  EXPECT_EQ(handed_over_[0].candidate, configuration_->registry());
  EXPECT_EQ(handed_over_[0].current->version, 1);
  EXPECT_THAT(handed_over_[0].changes, ElementsAre(config::Change{"series", "a", config::ChangeKind::kChanged}));
}

TEST_F(ConfigurationTest, ABadFileChangesNothingAndShowsUntilOneIsGood) {
  Write("registry.yaml", "series:\n  a: {gpus_pre_node: 2}\n");
  const absl::Status refused = Reload();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("registry.yaml:2:7: unknown key 'gpus_pre_node'"));
  EXPECT_THAT(handed_over_, IsEmpty());
  EXPECT_EQ(CardsInForce(), 1);
  api::RegistryStatus status = configuration_->Status();
  EXPECT_EQ(status.version, 1);
  EXPECT_TRUE(status.differs_on_disk);
  ASSERT_TRUE(status.last_fault.has_value());
  EXPECT_EQ(status.last_fault->text, Message(refused));

  Write("registry.yaml", Registry(3));
  ASSERT_TRUE(Reload().ok());
  status = configuration_->Status();
  EXPECT_FALSE(status.last_fault.has_value());
  EXPECT_FALSE(status.differs_on_disk);
}

TEST_F(ConfigurationTest, HalfOfAFaultyPairIsNotTaken) {
  Write("registry.yaml", Registry(2));
  Write("tpd.yaml", "jobs: {heartbeat: never}\n");
  EXPECT_FALSE(Reload().ok());
  EXPECT_EQ(CardsInForce(), 1);
}

TEST_F(ConfigurationTest, ADryRunChangesNothing) {
  Write("registry.yaml", Registry(2));
  const auto plan = configuration_->Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->changes.size(), 1u);
  EXPECT_EQ(CardsInForce(), 1);
  EXPECT_TRUE(configuration_->Status().differs_on_disk);
}

TEST_F(ConfigurationTest, WhatNeedsARestartIsNamedAndKeepsItsValue) {
  Write("tpd.yaml", "jobs: {heartbeat: 7s}\nscheduling: {stop_grace: 1s}\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_THAT(configuration_->Status().restart_keys, ElementsAre("scheduling.stop_grace", "jobs.heartbeat"));
  EXPECT_EQ(configuration_->server().heartbeat, absl::Seconds(5));
  EXPECT_EQ(configuration_->registry()->version, 1) << "the registry is the same";
  EXPECT_FALSE(configuration_->Status().differs_on_disk);
}

TEST_F(ConfigurationTest, ExecutorsNeedNoRestart) {
  Write("tpd.yaml", "jobs: {heartbeat: 5s, executors: [{provider: gpu, profile: b, backend: local}]}\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_THAT(configuration_->Status().restart_keys, IsEmpty());
  EXPECT_TRUE(configuration_->registry()->executors.contains("gpu/b"));
}

// --- Receivers --------------------------------------------------------------------------------------

class ReceiversTest : public ConfigurationTest {
 protected:
  void SetUp() override {
    ConfigurationTest::SetUp();
    WriteSecret("a secret of many bytes");
    Write("tpd.yaml",
          "jobs: {heartbeat: 5s}\nnotify:\n  webhooks:\n    - {name: chat, url: 'https://example.org/', secret_file: " +
              secret_.string() + "}\n");
    configuration_->FollowEndpoints([this](const notify::Endpoints& endpoints) { endpoints_ = endpoints; });
  }

  void WriteSecret(const std::string& text) const {
    WriteTo(secret_, text);
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  std::string Key() const { return std::get<notify::WebhookEndpoint>(endpoints_.at("chat").way).key; }

  const std::filesystem::path secret_ = root_ / "chat.secret";
  notify::Endpoints endpoints_;
};

TEST_F(ReceiversTest, ComeIntoForceWithAReloadAndSoDoNewSecrets) {
  EXPECT_THAT(endpoints_, IsEmpty());
  ASSERT_TRUE(Reload().ok());
  EXPECT_THAT(handed_over_.back().changes, ElementsAre(config::Change{"receiver", "chat", config::ChangeKind::kAdded}));
  EXPECT_TRUE(configuration_->registry()->receivers.webhooks.contains("chat"));
  EXPECT_EQ(Key(), "a secret of many bytes");
  WriteSecret("another secret of many bytes\n");
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(Key(), "another secret of many bytes");
}

TEST_F(ReceiversTest, ASecretThatCannotBeUsedLeavesAllAsItWas) {
  ASSERT_TRUE(Reload().ok());
  std::filesystem::permissions(secret_, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  Write("registry.yaml", Registry(3));
  EXPECT_THAT(std::string(Message(Reload())), HasSubstr("webhook chat: "));
  EXPECT_EQ(CardsInForce(), 1);
  WriteSecret("too short");
  const std::string said(Message(Reload()));
  EXPECT_THAT(said, HasSubstr("chat.secret: the secret has 9 bytes"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("too short")));
  EXPECT_EQ(Key(), "a secret of many bytes");
}

TEST_F(ConfigurationTest, AMissingDirectoryIsAFaultLikeAnother) {
  std::filesystem::rename(config_, root_ / "elsewhere");
  EXPECT_EQ(Reload().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(configuration_->Status().differs_on_disk);
  EXPECT_EQ(CardsInForce(), 1);
}

}  // namespace
}  // namespace tp::tpd
