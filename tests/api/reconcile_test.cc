// SystemService.Reconcile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"
#include "tp/v1/system.grpc.pb.h"

namespace tp::api {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

core::SeenObject Object(const std::string& key) {
  return {"local", key, AttemptTarget{.key = key, .nonce = "n", .attempt_dir = "/runs/x", .ranks_per_pool = {1}}};
}

class ReconcileTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    loop_.OnCommand([this](const loop::Command& command) -> absl::StatusOr<loop::Answer> {
      const auto* sweep = std::get_if<loop::SweepOrphans>(&command.action);
      if (sweep == nullptr) return Internal("not a sweep");
      sweeps_.push_back(*sweep);
      loop::Answer answer;
      answer.note = "1 orphan is being ended";
      return answer;
    });
    Commit(RunningRun(1, "ana"));
    Commit(EndedRun(RunningRun(2, "ana"), core::JobState::kSucceeded));
    inventory_ = std::vector<core::SeenObject>{Object("tp-test-e1-1-s0-a1"), Object("tp-test-e1-2-s0-a1"),
                                               Object("tp-test-e9-3-s0-a1"), Object("tp-other-e1-4-s0-a1")};
  }

  grpc::Status Reconcile(bool dry_run, v1::ReconcileResponse* response, store::Role role = store::Role::kAdmin) {
    v1::ReconcileRequest request;
    request.set_dry_run(dry_run);
    if (!dry_run) request.set_request_id("r1");
    const std::string caller = role == store::Role::kAdmin ? "root" : "olga";
    return v1::SystemService::NewStub(channel())->Reconcile(As(caller, role).get(), request, response);
  }

  std::vector<loop::SweepOrphans> sweeps_;
};

TEST_F(ReconcileTest, ADryRunListsAndEndsNothing) {
  v1::ReconcileResponse response;
  ASSERT_TRUE(Reconcile(true, &response).ok());
  ASSERT_EQ(response.findings_size(), 3);
  EXPECT_EQ(response.findings(0).key(), "tp-other-e1-4-s0-a1");
  EXPECT_EQ(response.findings(0).kind(), v1::RECONCILE_FINDING_KIND_FOREIGN);
  EXPECT_EQ(response.findings(1).key(), "tp-test-e1-2-s0-a1");
  EXPECT_EQ(response.findings(1).kind(), v1::RECONCILE_FINDING_KIND_ORPHAN);
  EXPECT_EQ(response.findings(2).key(), "tp-test-e9-3-s0-a1");
  EXPECT_EQ(response.findings(2).kind(), v1::RECONCILE_FINDING_KIND_FOREIGN);
  EXPECT_EQ(response.note(), "");
  EXPECT_THAT(sweeps_, IsEmpty());
}

TEST_F(ReconcileTest, OrphansOfThisDeploymentAndEpochAreEnded) {
  v1::ReconcileResponse response;
  ASSERT_TRUE(Reconcile(false, &response).ok());
  EXPECT_EQ(response.note(), "1 orphan is being ended");
  EXPECT_EQ(response.findings_size(), 3);
  ASSERT_THAT(sweeps_, SizeIs(1));
  ASSERT_THAT(sweeps_[0].orphans, SizeIs(1));
  EXPECT_EQ(sweeps_[0].orphans[0].target.key, "tp-test-e1-2-s0-a1");
}

TEST_F(ReconcileTest, ARunningAttemptWithoutObjectIsListed) {
  core::RunWithSteps run = RunningRun(5, "ana");
  run.steps[0].attempt->meter = core::Meter();
  Commit(run);
  inventory_ = std::vector<core::SeenObject>();
  v1::ReconcileResponse response;
  ASSERT_TRUE(Reconcile(true, &response).ok());
  const bool listed = std::any_of(response.findings().begin(), response.findings().end(), [](const auto& finding) {
    return finding.key() == "tp-test-e1-5-s0-a1" && finding.kind() == v1::RECONCILE_FINDING_KIND_MISSING;
  });
  EXPECT_TRUE(listed);
}

TEST_F(ReconcileTest, OnlyForAdmins) {
  v1::ReconcileResponse response;
  EXPECT_EQ(Reconcile(true, &response, store::Role::kOperator).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ReconcileTest, WithoutAnInventoryNothingIsEnded) {
  inventory_ = Unavailable("backend slurm does not answer");
  v1::ReconcileResponse response;
  EXPECT_EQ(Reconcile(false, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(sweeps_, IsEmpty());
}

}  // namespace
}  // namespace tp::api
