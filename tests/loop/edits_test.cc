// Edits of quota by admins: each says what it changes, none undoes another's. And what one would do.
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "harness.h"
#include "loop/loop_thread.h"
#include "plan/what_if.h"

namespace tp::loop::test {
namespace {

using testing::HasSubstr;

const Principal kRoot = {"root", store::Role::kAdmin};

SetQuota SetOf(const std::string& user, core::QuotaLimits limits, core::QuotaKeys clear = {}) {
  SetQuota set;
  set.user = user;
  set.limits = std::move(limits);
  set.clear = std::move(clear);
  return set;
}
core::QuotaLimits Gpus(int64_t gpus) {
  core::QuotaLimits limits;
  limits.gpus = gpus;
  return limits;
}
core::QuotaLimits Jobs(int64_t jobs) {
  core::QuotaLimits limits;
  limits.jobs = jobs;
  return limits;
}

class Edits : public ::testing::Test {
 protected:
  std::string Edit(SetQuota set, const std::string& request_id = "") {
    const auto answer = h_.Do(std::move(set), request_id, kRoot);
    return answer.ok() ? answer->note : std::string(answer.status().message());
  }

  core::QuotaLimits LimitsOfAna() const { return h_.loop->planner().quotas().LimitsOf("ana", h_.now); }

  absl::StatusOr<WhatIfAnswer> Ask(Proposal proposal, Principal who = kRoot) {
    absl::StatusOr<WhatIfAnswer> result = absl::InternalError("no reply");
    h_.loop->Post(WhatIfQuery{std::move(who), std::move(proposal)},
                  [&](absl::StatusOr<WhatIfAnswer> answer) { result = std::move(answer); });
    h_.Settle();
    return result;
  }

  Harness h_;
  int edits_ = 0;
};

TEST_F(Edits, WhatAnEditDoesNotNameStays) {
  EXPECT_EQ(Edit(SetOf("ana", Gpus(8))), "quota of ana: gpus: 8");
  EXPECT_EQ(Edit(SetOf("ana", Jobs(3))), "quota of ana: gpus: 8, jobs: 3");
  EXPECT_EQ(LimitsOfAna().gpus, 8);
  EXPECT_EQ(LimitsOfAna().jobs, 3);
  core::QuotaKeys gpus;
  gpus.gpus = true;
  EXPECT_EQ(Edit(SetOf("ana", {}, gpus)), "quota of ana: jobs: 3");
  core::QuotaKeys all;
  all.all = true;
  EXPECT_EQ(Edit(SetOf("ana", Gpus(2), all)), "quota of ana: gpus: 2");
  EXPECT_EQ(Edit(SetOf("ana", {}, all)), "quota of ana: the deployment's defaults");
  EXPECT_TRUE(LimitsOfAna().empty());
}

TEST_F(Edits, SurviveARestart) {
  Edit(SetOf("ana", Gpus(8)));
  Edit(SetOf("ana", Jobs(3)));
  h_.Restart();
  EXPECT_EQ(LimitsOfAna().gpus, 8);
  EXPECT_EQ(LimitsOfAna().jobs, 3);
  EXPECT_EQ(h_.store->Load()->quota_rules.size(), 1u);
}

TEST_F(Edits, TheAuditHasBeforeAndAfter) {
  const auto detail_of = [&](SetQuota set) {
    h_.loop->Post(Command{kRoot, "e" + std::to_string(++edits_), "SetQuota", "sha", std::move(set)},
                  [](const absl::StatusOr<Answer>&) {});
    const std::optional<store::Txn> txn = h_.loop->Turn(h_.now);
    EXPECT_TRUE(h_.store->Commit(*txn).ok());
    h_.loop->Committed();
    return txn->audit.at(0).detail;
  };
  EXPECT_EQ(detail_of(SetOf("ana", Gpus(8))), "quota of ana: gpus: 8; before: the deployment's defaults");
  EXPECT_EQ(detail_of(SetOf("ana", Jobs(3))), "quota of ana: gpus: 8, jobs: 3; before: gpus: 8");
}

TEST_F(Edits, TheSameRequestIsMadeOnce) {
  EXPECT_EQ(Edit(SetOf("ana", Gpus(8)), "once"), "quota of ana: gpus: 8");
  EXPECT_EQ(Edit(SetOf("ana", Jobs(3)), "other"), "quota of ana: gpus: 8, jobs: 3");
  EXPECT_EQ(Edit(SetOf("ana", Gpus(8)), "once"), "quota of ana: gpus: 8");
  EXPECT_EQ(LimitsOfAna().jobs, 3);
}

TEST_F(Edits, AnOverrideHasNothingToClear) {
  SetQuota set = SetOf("ana", Gpus(8));
  set.until = h_.now + absl::Hours(1);
  set.clear.jobs = true;
  EXPECT_THAT(Edit(set), HasSubstr("an override is a rule of its own"));
}

TEST_F(Edits, AskingChangesNothingAndFailsAsTheEditWould) {
  const auto answer = Ask(SetOf("ana", Gpus(8)));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->note, "quota of ana: gpus: 8");
  EXPECT_TRUE(LimitsOfAna().empty());
  EXPECT_EQ(h_.store->ReadMeta()->revision, 0);
  EXPECT_EQ(Ask(SetOf("ana", Gpus(8)), {"ana", store::Role::kUser}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Ask(RemoveQuotaRule{.id = 7}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ask(HoldWindowOpen{.series = "h200", .until = std::nullopt}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(Edits, WhatIsForetoldIsWhatTheEditDoes) {
  Edit(SetOf("ada", Gpus(0)));
  for (int i = 0; i < 3; ++i) h_.Submit();
  const auto foretold = Ask(SetOf("ada", Gpus(16)));
  ASSERT_TRUE(foretold.ok());
  const plan::Forecast forecast = plan::Foresee(*foretold->what_if, 100);
  std::set<core::StepRef> released;
  for (const plan::Effect& effect : forecast.effects) {
    if (effect.kind == plan::EffectKind::kReleased) released.insert(effect.step);
  }
  EXPECT_EQ(h_.sink.Count("launch"), 0);
  Edit(SetOf("ada", Gpus(16)));
  std::set<core::StepRef> started;
  for (const auto& [n, run] : h_.loop->runs()) {
    if (run.steps[0].attempt) started.insert(run.steps[0].ref);
  }
  EXPECT_EQ(released, started);
  EXPECT_EQ(started.size(), 2u);
}

// Two admins at once, each with a limit of their own: both count in the end, whatever came between.
TEST_F(Edits, OfTwoAdminsAtOnceLoseNothing) {
  constexpr int kEdits = 300;
  ThreadHooks hooks;
  hooks.fatal = [](const absl::Status& status) { FAIL() << status; };
  LoopThread thread(*h_.loop, *h_.store, std::move(hooks));
  thread.Start();
  std::atomic<int> lost = 0;
  const auto edit = [&](const std::string& admin, const std::function<core::QuotaLimits(int64_t)>& limits) {
    for (int i = 1; i <= kEdits; ++i) {
      std::promise<absl::StatusOr<Answer>> promise;
      thread.Post(Command{{admin, store::Role::kAdmin}, std::to_string(i), "SetQuota", "sha", SetOf("ana", limits(i))},
                  [&](absl::StatusOr<Answer> answer) { promise.set_value(std::move(answer)); });
      const auto answer = promise.get_future().get();
      const std::string own = admin + ": " + std::to_string(i);
      lost += answer.ok() && (answer->note + ",").find(own + ",") != std::string::npos ? 0 : 1;
    }
  };
  std::thread first([&] { edit("gpus", Gpus); });
  std::thread second([&] { edit("jobs", Jobs); });
  first.join();
  second.join();
  thread.Stop();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(LimitsOfAna().gpus, kEdits);
  EXPECT_EQ(LimitsOfAna().jobs, kEdits);
}

}  // namespace
}  // namespace tp::loop::test
