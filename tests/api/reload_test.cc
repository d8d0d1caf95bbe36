// SystemService.ReloadConfiguration and RegistryService.GetRegistryStatus.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "plan/planner.h"
#include "sample_registry.h"
#include "server_fixture.h"
#include "tp/v1/registry.grpc.pb.h"
#include "tp/v1/system.grpc.pb.h"

namespace tp::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

core::Registry RegistryOf(int nodes) {
  core::Registry registry;
  registry.version = 4;
  core::Executor& executor = registry.executors["gpu/default"];
  executor.name = "gpu/default";
  executor.backend = "local";
  core::Series& series = registry.series["h200"];
  series.name = "h200";
  series.gpus_per_node = 8;
  series.executor = "gpu/default";
  for (int i = 0; i < nodes; ++i) series.nodes.push_back({.name = "n" + std::to_string(i), .address = "127.0.0.1"});
  core::Profile& profile = registry.profiles["h200"];
  profile.name = "h200";
  profile.series = "h200";
  profile.default_total = 8;
  return registry;
}

class ReloadTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    configuration_.in_force = RegistryOf(2);
    configuration_.on_disk = RegistryOf(1);
    loop_.OnWhatIf([this](const loop::WhatIfQuery& query) { return ImageFor(query); });
    loop_.OnCommand([this](const loop::Command& command) -> absl::StatusOr<loop::Answer> {
      const auto* reload = std::get_if<loop::ReloadRegistry>(&command.action);
      if (reload == nullptr) return Internal("not a reload");
      reloads_.push_back(*reload);
      loop::Answer answer;
      answer.note = reload->answer;
      return answer;
    });
  }

  // An image of a planner that follows what was queued.
  loop::WhatIfAnswer ImageFor(const loop::WhatIfQuery& query) {
    static const core::Policy kPolicy;
    const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
    plan::Planner planner(kPolicy, absl::UTCTimeZone(), std::make_shared<core::Registry>(configuration_.in_force));
    for (const core::RunWithSteps& run : queued_) planner.Follow(run, run.steps[0], now);
    plan::Change change;
    change.registry = std::get<std::shared_ptr<const core::Registry>>(query.proposal);
    return {.note = "",
            .what_if = std::make_shared<const plan::WhatIf>(
                plan::WhatIf{.image = planner.TakeImage(), .beside = {}, .change = change, .now = now})};
  }

  grpc::Status Reload(const std::string& request_id, bool dry_run, v1::ReloadConfigurationResponse* response,
                      store::Role role = store::Role::kAdmin) {
    v1::ReloadConfigurationRequest request;
    request.set_request_id(request_id);
    request.set_dry_run(dry_run);
    const std::string caller = role == store::Role::kAdmin ? "root" : "olga";
    return v1::SystemService::NewStub(channel())->ReloadConfiguration(As(caller, role).get(), request, response);
  }

  void Queue(int64_t n, const std::string& profile) {
    core::RunWithSteps run = QueuedRun(n, "alice");
    run.steps[0].spec.profiles = {profile};
    run.steps[0].hold.owner = true;
    Commit(run);
    queued_.push_back(run);
  }

  std::vector<core::RunWithSteps> queued_;  // held by their owners: none starts
  std::vector<loop::ReloadRegistry> reloads_;
};

TEST_F(ReloadTest, HandsTheRegistryToTheLoopAndSaysWhatChanged) {
  v1::ReloadConfigurationResponse response;
  configuration_.restart_keys = {"server.listen"};
  ASSERT_TRUE(Reload("r1", false, &response).ok());
  ASSERT_EQ(reloads_.size(), 1u);
  EXPECT_EQ(reloads_[0].registry->version, 5);
  EXPECT_EQ(reloads_[0].detail, "registry version 5: series h200 changed");
  EXPECT_EQ(response.registry_version(), 5);
  ASSERT_EQ(response.changes_size(), 1);
  EXPECT_EQ(response.changes(0).kind(), v1::CONFIGURATION_CHANGE_KIND_CHANGED);
  EXPECT_EQ(response.changes(0).name(), "h200");
  EXPECT_THAT(response.restart_keys(), ElementsAre("server.listen"));
}

TEST_F(ReloadTest, OnlyForAdmins) {
  v1::ReloadConfigurationResponse response;
  EXPECT_EQ(Reload("r1", false, &response, store::Role::kOperator).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Reload("r1", true, &response, store::Role::kOperator).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(reloads_, IsEmpty());
}

TEST_F(ReloadTest, FaultyFilesAreAPreconditionAndReachNobody) {
  v1::ReloadConfigurationResponse response;
  configuration_.fault = FailedPrecondition("registry.yaml:1:1: nonsense");
  for (const bool dry_run : {false, true}) {
    const grpc::Status status = Reload("r1", dry_run, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("registry.yaml:1:1"));
  }
  EXPECT_THAT(reloads_, IsEmpty());
}

TEST_F(ReloadTest, TheSameRequestHasTheSameAnswer) {
  v1::ReloadConfigurationResponse first;
  ASSERT_TRUE(Reload("r1", false, &first).ok());
  const std::vector<loop::Command> commands = loop_.commands();
  ASSERT_EQ(commands.size(), 1u);
  CommitRequest({.principal = commands[0].who.user,
                 .request_id = "r1",
                 .method = commands[0].method,
                 .body_sha256 = commands[0].body_sha256,
                 .run = 0,
                 .note = reloads_[0].answer});
  configuration_.on_disk = RegistryOf(7);
  v1::ReloadConfigurationResponse again;
  ASSERT_TRUE(Reload("r1", false, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(reloads_.size(), 1u);
}

TEST_F(ReloadTest, ADryRunForecastsTheQueue) {
  Queue(1, "h200:16");
  Queue(2, "h200:8");
  v1::ReloadConfigurationResponse response;
  ASSERT_TRUE(Reload("", true, &response).ok());
  EXPECT_EQ(response.registry_version(), 4);
  ASSERT_EQ(response.forecast().effects_size(), 1);
  EXPECT_EQ(response.forecast().effects(0).kind(), v1::QUEUE_EFFECT_KIND_HELD);
  EXPECT_EQ(response.forecast().effects(0).run(), "train-1");
  EXPECT_EQ(response.forecast().effects(0).gate(), v1::GATE_HELD);
  EXPECT_THAT(response.forecast().effects(0).sentence(), HasSubstr("has only 1 node x 8"));
  EXPECT_THAT(reloads_, IsEmpty());
}

TEST_F(ReloadTest, FilesThatChangeNothingAskNobody) {
  configuration_.on_disk = configuration_.in_force;
  v1::ReloadConfigurationResponse response;
  ASSERT_TRUE(Reload("", true, &response).ok());
  ASSERT_TRUE(Reload("r1", false, &response).ok());
  EXPECT_FALSE(response.has_forecast() && response.forecast().ByteSizeLong() > 0);
  EXPECT_THAT(loop_.proposals(), IsEmpty());
}

TEST_F(ReloadTest, AReloadSaysWhatItDidToTheQueueAndGoesOnWithout) {
  Queue(1, "h200:16");
  v1::ReloadConfigurationResponse response;
  ASSERT_TRUE(Reload("r1", false, &response).ok());
  EXPECT_EQ(response.forecast().effects_size(), 1);
  configuration_.on_disk = RegistryOf(3);
  loop_.OnWhatIf(nullptr);
  ASSERT_TRUE(Reload("r2", false, &response).ok());
  EXPECT_EQ(response.forecast().effects_size(), 0);
  EXPECT_EQ(reloads_.size(), 2u);
}

TEST_F(ReloadTest, TheStatusIsForOperators) {
  configuration_.status.version = 9;
  configuration_.status.loaded_at = absl::FromUnixSeconds(1'700'000'000);
  configuration_.status.source_sha256 = "abc";
  configuration_.status.last_fault = {.at = absl::FromUnixSeconds(1'700'000'060), .text = "a:1:1: x\nb:2:2: y"};
  configuration_.status.differs_on_disk = true;
  const auto stub = v1::RegistryService::NewStub(channel());
  v1::GetRegistryStatusResponse response;
  EXPECT_EQ(stub->GetRegistryStatus(As("alice").get(), {}, &response).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub->GetRegistryStatus(As("olga", store::Role::kOperator).get(), {}, &response).ok());
  EXPECT_EQ(response.version(), 9);
  EXPECT_EQ(response.loaded_at().seconds(), 1'700'000'000);
  EXPECT_THAT(response.last_fault().problems(), ElementsAre("a:1:1: x", "b:2:2: y"));
  EXPECT_TRUE(response.differs_on_disk());
  EXPECT_EQ(response.card_faults_size(), 0);
}

TEST_F(ReloadTest, TheStatusNamesCardsThatTwoAttemptsHold) {
  registry_ = SampleRegistry();
  Commit(RunningRun(1, "alice"));
  Commit(RunningRun(2, "bob"));
  v1::GetRegistryStatusResponse response;
  const auto stub = v1::RegistryService::NewStub(channel());
  ASSERT_TRUE(stub->GetRegistryStatus(As("olga", store::Role::kOperator).get(), {}, &response).ok());
  EXPECT_THAT(response.card_faults(),
              ElementsAre(testing::StartsWith("tp-test-e1-1-s0-a1 and tp-test-e1-2-s0-a1 both hold cards 0, 1, 2, 3"),
                          testing::StartsWith("tp-test-e1-1-s0-a1 and tp-test-e1-2-s0-a1 both hold cards 0, 1, 2, 3")));
}

}  // namespace
}  // namespace tp::api
