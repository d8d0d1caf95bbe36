// QuotaService over the wire.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/planner.h"
#include "sample_registry.h"
#include "sample_runs.h"
#include "server_fixture.h"
#include "tp/v1/quota.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using store::Role;

loop::UserStanding StandingOf(const std::string& user) {
  loop::UserStanding standing;
  standing.user = user;
  standing.limits.gpus = 32;
  standing.limits.series_gpus["h200"] = core::kNoLimit;
  standing.use.gpus = 16;
  standing.use.series_gpus["h200"] = 16;
  standing.use.jobs = 1;
  standing.use.month_gpu_ms = 7'200'000;
  standing.use.storage = core::StorageUse{.bytes = 1024, .scanned_at = absl::FromUnixSeconds(1'700'000'000)};
  standing.rules.push_back({.id = 4,
                            .user = user,
                            .from = std::nullopt,
                            .until = absl::FromUnixSeconds(1'800'000'000),
                            .limits = standing.limits,
                            .set_at = absl::FromUnixSeconds(1'700'000'000),
                            .set_by = "root"});
  return standing;
}

class QuotaTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::QuotaService::NewStub(channel());
    loop::Standings standings;
    for (const char* user : {"ana", "bob", "eve"}) standings.users.push_back(StandingOf(user));
    standings.defaults.jobs = 8;
    loop_.SetStandings(standings);
  }

  void Accept(const std::string& note) {
    loop_.OnCommand([note](const loop::Command&) -> absl::StatusOr<loop::Answer> {
      loop::Answer answer;
      answer.note = note;
      return answer;
    });
  }

  static v1::SetQuotaRequest Request(const std::string& user) {
    v1::SetQuotaRequest request;
    request.set_request_id("r-1");
    request.set_user(user);
    return request;
  }

  // Of a planner in which run 7 of bob's waits for the room that a run of eve's has.
  static loop::WhatIfAnswer AnswerOf(const loop::SetQuota& set) {
    auto registry = std::make_shared<core::Registry>(SampleRegistry());
    registry->series["h200"].executor_distributed = "gpu/default";
    static const core::Policy kPolicy;
    const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
    plan::Planner planner(kPolicy, absl::UTCTimeZone(), registry);
    for (const int64_t n : {6, 7}) {
      const core::RunWithSteps run = QueuedRun(n, n == 6 ? "eve" : "bob");
      planner.Follow(run, run.steps[0], now);
    }
    core::QuotaRule rule;
    rule.id = 1;
    rule.user = set.user;
    rule.limits = set.limits;
    plan::Change change;
    change.put_rules.push_back(rule);
    return {.note = "quota of bob: gpus: 0",
            .what_if = std::make_shared<const plan::WhatIf>(
                plan::WhatIf{.image = planner.TakeImage(), .beside = {}, .change = change, .now = now})};
  }

  std::unique_ptr<v1::QuotaService::Stub> stub_;
};

TEST_F(QuotaTest, OnesOwnStanding) {
  v1::GetStandingResponse response;
  ASSERT_TRUE(stub_->GetStanding(As("ana", Role::kViewer).get(), {}, &response).ok());
  const v1::Standing& standing = response.standing();
  EXPECT_EQ(standing.user(), "ana");
  EXPECT_EQ(standing.limits().gpus(), 32);
  EXPECT_FALSE(standing.limits().has_jobs());
  EXPECT_EQ(standing.limits().series_gpus().at("h200"), -1);
  EXPECT_EQ(standing.use().month_gpu_ms(), 7'200'000);
  EXPECT_EQ(standing.use().storage().bytes(), 1024);
  ASSERT_EQ(standing.rules_size(), 1);
  EXPECT_EQ(standing.rules(0).id(), 4);
  EXPECT_FALSE(standing.rules(0).has_from());
  EXPECT_EQ(standing.rules(0).until().seconds(), 1'800'000'000);
  EXPECT_EQ(response.defaults().jobs(), 8);
}

TEST_F(QuotaTest, OthersAreForOperators) {
  v1::GetStandingRequest request;
  request.set_user("bob");
  v1::GetStandingResponse response;
  EXPECT_EQ(stub_->GetStanding(As("ana").get(), request, &response).error_code(), StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->GetStanding(As("olga", Role::kOperator).get(), request, &response).ok());
  EXPECT_EQ(response.standing().user(), "bob");
  v1::ListQuotasResponse list;
  EXPECT_EQ(stub_->ListQuotas(As("ana").get(), {}, &list).error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(QuotaTest, WhoHasNothingStandsWithNothing) {
  v1::GetStandingResponse response;
  ASSERT_TRUE(stub_->GetStanding(As("zoe").get(), {}, &response).ok());
  EXPECT_EQ(response.standing().user(), "zoe");
  EXPECT_EQ(response.standing().use().gpus(), 0);
}

TEST_F(QuotaTest, EverybodyInPages) {
  v1::ListQuotasRequest request;
  request.set_page_size(2);
  v1::ListQuotasResponse response;
  ASSERT_TRUE(stub_->ListQuotas(As("olga", Role::kOperator).get(), request, &response).ok());
  ASSERT_EQ(response.standings_size(), 2);
  EXPECT_EQ(response.next_after_user(), "bob");
  request.set_after_user(response.next_after_user());
  v1::ListQuotasResponse second;
  ASSERT_TRUE(stub_->ListQuotas(As("olga", Role::kOperator).get(), request, &second).ok());
  ASSERT_EQ(second.standings_size(), 1);
  EXPECT_EQ(second.standings(0).user(), "eve");
  EXPECT_EQ(second.next_after_user(), "");
}

TEST_F(QuotaTest, SetGoesThroughTheLoop) {
  Accept("quota of bob: gpus: 16");
  v1::SetQuotaRequest request = Request("bob");
  request.mutable_limits()->set_gpus(16);
  (*request.mutable_limits()->mutable_series_gpus())["h200"] = -1;
  request.mutable_until()->set_seconds(1'900'000'000);
  v1::SetQuotaResponse response;
  EXPECT_EQ(stub_->SetQuota(As("ana", Role::kUser).get(), request, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_EQ(response.note(), "quota of bob: gpus: 16");
  const auto set = std::get<loop::SetQuota>(loop_.commands().at(0).action);
  EXPECT_EQ(set.user, "bob");
  EXPECT_EQ(set.limits.gpus, 16);
  EXPECT_EQ(set.limits.series_gpus.at("h200"), core::kNoLimit);
  EXPECT_EQ(set.until, absl::FromUnixSeconds(1'900'000'000));
  EXPECT_FALSE(set.from);
}

TEST_F(QuotaTest, WhatIsClearedIsNamed) {
  Accept("quota of bob: the deployment's defaults");
  v1::SetQuotaRequest request = Request("bob");
  for (const char* key : {"gpus", "series_gpus.h200", "series_gpus.a.b", "jobs", "gpu_hours", "storage_bytes"}) {
    request.add_clear(key);
  }
  v1::SetQuotaResponse response;
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  core::QuotaKeys expected;
  expected.gpus = expected.jobs = expected.gpu_hours = expected.storage_bytes = true;
  expected.series = {"h200", "a.b"};
  EXPECT_EQ(std::get<loop::SetQuota>(loop_.commands().at(0).action).clear, expected);
  request = Request("bob");
  request.set_request_id("r-2");
  request.add_clear("*");
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_TRUE(std::get<loop::SetQuota>(loop_.commands().at(1).action).clear.all);
}

TEST_F(QuotaTest, ADryRunAsksTheLoopAndChangesNothing) {
  Commit(QueuedRun(7, "bob"));
  loop_.OnWhatIf([](const loop::WhatIfQuery& query) -> absl::StatusOr<loop::WhatIfAnswer> {
    return AnswerOf(std::get<loop::SetQuota>(query.proposal));
  });
  v1::SetQuotaRequest request = Request("bob");
  request.clear_request_id();
  request.mutable_limits()->set_gpus(0);
  request.set_dry_run(true);
  v1::SetQuotaResponse response;
  EXPECT_EQ(stub_->SetQuota(As("olga", Role::kOperator).get(), request, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_EQ(response.note(), "quota of bob: gpus: 0");
  ASSERT_EQ(response.forecast().counts_size(), 1);
  EXPECT_EQ(response.forecast().counts(0).kind(), v1::QUEUE_EFFECT_KIND_HELD);
  EXPECT_EQ(response.forecast().counts(0).count(), 1);
  const v1::QueueEffect& effect = response.forecast().effects(0);
  EXPECT_EQ(effect.run(), QueuedRun(7, "bob").run.id());
  EXPECT_EQ(effect.gate(), v1::GATE_QUOTA_GPUS);
  EXPECT_TRUE(loop_.commands().empty());

  v1::RemoveQuotaRuleRequest remove;
  remove.set_rule(4);
  remove.set_dry_run(true);
  v1::RemoveQuotaRuleResponse removed;
  loop_.OnWhatIf([](const loop::WhatIfQuery& query) -> absl::StatusOr<loop::WhatIfAnswer> {
    EXPECT_EQ(std::get<loop::RemoveQuotaRule>(query.proposal).id, 4);
    return NotFound("there is no quota rule 4");
  });
  EXPECT_EQ(stub_->RemoveQuotaRule(As("root", Role::kAdmin).get(), remove, &removed).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(QuotaTest, TheSameRequestIsAnsweredAsBefore) {
  v1::SetQuotaRequest request = Request("bob");
  request.mutable_limits()->set_gpus(16);
  v1::SetQuotaResponse response;
  Accept("first");
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  CommitRequest({.principal = "root",
                 .request_id = "r-1",
                 .method = loop_.commands().at(0).method,
                 .body_sha256 = loop_.commands().at(0).body_sha256,
                 .note = "first"});
  Accept("second");
  ASSERT_TRUE(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_EQ(response.note(), "first");
  EXPECT_EQ(loop_.commands().size(), 1U);
  request.mutable_limits()->set_gpus(17);
  EXPECT_EQ(stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response).error_code(),
            StatusCode::ALREADY_EXISTS);
}

TEST_F(QuotaTest, RefusesWhatCannotBeALimit) {
  v1::SetQuotaResponse response;
  const auto field_of = [&](const v1::SetQuotaRequest& request) {
    const grpc::Status status = stub_->SetQuota(As("root", Role::kAdmin).get(), request, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
    return DetailOf(status).field();
  };
  for (const char* name : {"", "Ana", "../etc", "a b", "ana\x1b[31m", "42"}) EXPECT_EQ(field_of(Request(name)), "user");
  for (const int64_t limit : {int64_t{-2}, int64_t{1'000'000'001}, std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()}) {
    v1::SetQuotaRequest request = Request("bob");
    request.mutable_limits()->set_gpus(limit);
    EXPECT_EQ(field_of(request), "limits.gpus") << limit;
    request = Request("bob");
    request.mutable_limits()->set_gpu_hours(limit);
    EXPECT_EQ(field_of(request), "limits.gpu_hours") << limit;
    request = Request("bob");
    (*request.mutable_limits()->mutable_series_gpus())["h200"] = limit;
    EXPECT_EQ(field_of(request), "limits.series_gpus") << limit;
  }
  v1::SetQuotaRequest request = Request("bob");
  request.mutable_limits()->set_storage_bytes((int64_t{1} << 60) + 1);
  EXPECT_EQ(field_of(request), "limits.storage_bytes");
  request = Request("bob");
  request.add_clear("gpu");
  EXPECT_EQ(field_of(request), "clear");
  request = Request("bob");
  request.add_clear("series_gpus.");
  EXPECT_EQ(field_of(request), "clear");
  request = Request("bob");
  request.add_clear("jobs");
  request.mutable_limits()->set_jobs(1);
  EXPECT_EQ(field_of(request), "clear");
  EXPECT_EQ(field_of(Request("bob")), "limits");
  request = Request("bob");
  request.clear_request_id();
  request.mutable_limits()->set_gpus(1);
  EXPECT_EQ(field_of(request), "request_id");
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(QuotaTest, RulesAreRemovedByTheirNumber) {
  Accept("removed: quota of bob");
  v1::RemoveQuotaRuleRequest request;
  request.set_request_id("r-2");
  request.set_rule(4);
  v1::RemoveQuotaRuleResponse response;
  EXPECT_EQ(stub_->RemoveQuotaRule(As("olga", Role::kOperator).get(), request, &response).error_code(),
            StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->RemoveQuotaRule(As("root", Role::kAdmin).get(), request, &response).ok());
  EXPECT_EQ(response.note(), "removed: quota of bob");
  EXPECT_EQ(std::get<loop::RemoveQuotaRule>(loop_.commands().at(0).action).id, 4);
}

}  // namespace
}  // namespace tp::api
