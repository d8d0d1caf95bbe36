#include "harness.h"

namespace tp::loop::test {
namespace {

using enum core::JobState;

TEST(Loop, OneJobFromSubmitToLedger) {
  Harness h;
  const int64_t run = h.Submit("h200:16");
  EXPECT_EQ(h.State(run), kSubmitted);
  const std::string key = h.sink.Last("launch").key;
  EXPECT_EQ(key, "tp-test-e1-1-s0-a1");
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  EXPECT_EQ(h.State(run), kPending);
  h.Observe(key, Harness::UpOrOver(2, std::nullopt));
  EXPECT_EQ(h.State(run), kRunning);
  h.Observe(key, Harness::UpOrOver(2, 0));
  EXPECT_EQ(h.State(run), kSucceeded);
  EXPECT_EQ(h.sink.Last("untrack").key, key);
  const auto ledger = h.store->Ledger({}, 0, 10).value();
  ASSERT_EQ(ledger.size(), 1u);
  EXPECT_EQ(ledger[0].gpu_ms, 2000 * 16);
  EXPECT_TRUE(store::CheckLedger(*h.store).ok());
  EXPECT_TRUE(h.loop->runs().empty());  // terminal runs leave memory
}

TEST(Loop, NothingLeavesBeforeItsCommit) {
  Harness h;
  bool replied = false;
  h.loop->Post(Command{{"ada", store::Role::kUser}, "r", "Submit", "sha", Harness::Job()},
               [&](const absl::StatusOr<Answer>&) { replied = true; });
  bool asked = false;
  auto txn = h.loop->Turn(h.now);
  h.loop->Post(Query{{1}}, [&](const std::vector<LiveRun>&) { asked = true; });
  EXPECT_FALSE(h.loop->Turn(h.now));  // the next turn is decided while the commit is under way
  ASSERT_TRUE(txn);
  EXPECT_FALSE(replied);
  EXPECT_FALSE(asked);
  EXPECT_TRUE(h.sink.sent.empty());
  ASSERT_TRUE(h.store->Commit(*txn).ok());
  h.loop->Committed();
  EXPECT_TRUE(replied);
  EXPECT_TRUE(asked);
  EXPECT_EQ(h.sink.Count("launch"), 1);
}

TEST(Loop, SameRequestIdGivesTheSameRun) {
  Harness h;
  const auto first = h.Do(Harness::Job(), "same");
  const auto second = h.Do(Harness::Job(), "same");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->run, second->run);
  EXPECT_EQ(h.sink.Count("launch"), 1);
  h.loop->Post(Command{{"ada", store::Role::kUser}, "same", "Test", "other", Harness::Job()},
               [](const absl::StatusOr<Answer>& answer) {
                 EXPECT_EQ(answer.status().code(), absl::StatusCode::kAlreadyExists);
               });
  h.Settle();
}

TEST(Loop, QueuedJobsStartInOrderAsCardsAreReleased) {
  Harness h;
  const int64_t first = h.Submit("h200:16");
  const int64_t second = h.Submit("h200:16");
  const int64_t third = h.Submit("h200:16");
  EXPECT_EQ(h.State(second), kQueued);
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(2, 0));
  EXPECT_EQ(h.State(first), kSucceeded);
  EXPECT_EQ(h.State(second), kSubmitted);
  EXPECT_EQ(h.State(third), kQueued);
}

TEST(Loop, FairShareIsTheSameAfterARestart) {
  for (const bool restarts : {false, true}) {
    Harness h;
    h.policy.fair_share = true;
    h.Restart();
    const auto submit = [&](const std::string& user) { return h.Do(Harness::Job("h200:16"), "", {user})->run; };
    const auto end_of_last = [&h] {
      h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
      h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(2, 0));
    };
    submit("ada");
    end_of_last();
    const int64_t blocker = submit("zoe");
    const int64_t used = submit("ada");
    const int64_t did_not = submit("ben");
    if (restarts) {
      h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
      h.Restart();
      h.Settle();
      h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(2, 0));
    } else {
      end_of_last();
    }
    EXPECT_EQ(h.State(blocker), kSucceeded);
    EXPECT_EQ(h.State(did_not), kSubmitted) << restarts;
    EXPECT_EQ(h.State(used), kQueued) << restarts;
    Standings standings;
    h.loop->Post(StandingQuery(), [&standings](absl::StatusOr<Standings> told) { standings = *std::move(told); });
    h.Settle();
    EXPECT_NEAR(core::ShareOf(standings.shares, "ada"), 32, 0.01) << restarts;
    EXPECT_NEAR(core::ShareOf(standings.shares, "zoe"), 32, 0.01) << restarts;
    EXPECT_EQ(core::ShareOf(standings.shares, "ben"), 0) << restarts;
  }
}

TEST(Loop, AForecastHasWhatHoldsCardsAndOfTheStepsNamedThoseThatWait) {
  Harness h;
  const int64_t holds = h.Submit("h200:16");
  const int64_t waits = h.Submit("h200:16");
  const int64_t unnamed = h.Submit("h200:16");
  std::shared_ptr<const plan::ForecastInput> input;
  h.loop->Post(ForecastQuery{{{holds, 0}, {waits, 0}, {999, 0}, {waits, 7}}},
               [&input](const auto& taken) { input = *taken; });
  h.Settle();
  ASSERT_NE(input, nullptr);
  ASSERT_EQ(input->holding.size(), 1u);
  EXPECT_EQ(input->holding[0].ref.run, holds);
  EXPECT_FALSE(input->holding[0].placement.empty());
  EXPECT_EQ(input->holding[0].frees_at, std::nullopt) << "it has no time limit";
  ASSERT_EQ(input->waiting.size(), 1u);
  EXPECT_EQ(input->waiting[0].ref.run, waits);
  EXPECT_EQ(input->use.size(), 1u);
  EXPECT_EQ(plan::EstimateStarts(*input).at({waits, 0}).why_none, plan::NoEstimate::kNoLimit);
  EXPECT_EQ(h.State(unnamed), kQueued);
}

TEST(Loop, EqualShapesThatDoNotFitAreTriedOnceInAPass) {
  Harness h;
  h.Submit("h200:16");
  for (int i = 0; i < 50; ++i) h.Submit("h200:8");
  const std::string key = h.sink.Last("launch").key;
  const int64_t before = h.loop->planner().counters().evaluations;
  h.Observe(key, Harness::UpOrOver(2, 0));
  // Two fit, the third does not and is looked at once more to reserve, the other 47 are not tried.
  EXPECT_EQ(h.loop->planner().counters().evaluations - before, 4);
}

TEST(Loop, RestartLooksUpAnUnansweredLaunchAndNeverRepeatsIt) {
  Harness h;
  const int64_t run = h.Submit();
  EXPECT_EQ(h.sink.Count("launch"), 1);
  const std::string key = h.sink.Last("launch").key;
  h.sink.sent.clear();
  h.Restart();
  h.Settle();
  EXPECT_EQ(h.sink.Count("launch"), 0);
  EXPECT_EQ(h.sink.Last("track").key, key);
  EXPECT_EQ(h.State(run), kSubmitted);
  // It had not been sent: verified absent, fenced, then attempt 2.
  h.Observe(key, Absent{});
  h.now += absl::Seconds(6);
  h.Observe(key, Absent{});
  h.Answer_(FenceResult{FenceWon{}}, "fence");
  Present fenced;
  fenced.claim = Claim::kFenced;
  fenced.freed = true;
  h.Observe(key, fenced);
  EXPECT_EQ(h.State(run), kQueued);
  h.now += absl::Seconds(2);
  h.Settle();
  EXPECT_EQ(h.sink.Last("launch").key, "tp-test-e1-1-s0-a2");
}

TEST(Loop, RestartSendsAgainWhatIsOwed) {
  Harness h;
  const int64_t run = h.Submit();
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  EXPECT_EQ(h.sink.Count("signal"), 1);
  h.Restart();
  EXPECT_EQ(h.sink.Count("signal"), 2);
  h.Answer_(absl::OkStatus(), "signal");
  h.Restart();
  EXPECT_EQ(h.sink.Count("signal"), 2);
}

TEST(Loop, ASignalThatFailedIsSentAgainLater) {
  Harness h;
  const int64_t run = h.Submit();
  const std::string key = h.sink.Last("launch").key;
  h.Answer_(LaunchResult{LaunchAccepted{}}, "launch");
  h.Observe(key, Harness::UpOrOver(1, std::nullopt));
  ASSERT_TRUE(h.Do(StopRun{h.store->GetRun(run).value()}).ok());
  h.Answer_(absl::UnavailableError("no answer"), "signal");
  EXPECT_EQ(h.sink.Count("signal"), 1);
  EXPECT_EQ(h.loop->NextTimer(), h.now + absl::Seconds(1));
  h.now += absl::Seconds(1);
  h.Settle();
  EXPECT_EQ(h.sink.Count("signal"), 2);
}

TEST(Loop, OnlyTheOwnerOrAnOperatorMayStop) {
  Harness h;
  const int64_t run = h.Submit();
  const auto stored = h.store->GetRun(run).value();
  EXPECT_EQ(h.Do(StopRun{stored}, "", {"eve", store::Role::kUser}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(h.Do(StopRun{stored}, "", {"ada", store::Role::kViewer}).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(h.Do(StopRun{stored}, "", {"olga", store::Role::kOperator}).ok());
}

TEST(Loop, StopOfWhatIsOver) {
  Harness h;
  const int64_t run = h.Submit();
  const auto early = h.store->GetRun(run).value();
  const std::string key = h.sink.Last("launch").key;
  h.Observe(key, Harness::UpOrOver(1, 0));
  EXPECT_EQ(h.Do(StopRun{h.store->GetRun(run).value()}).status().code(), absl::StatusCode::kFailedPrecondition);
  // What the caller read before the end is not what it is now.
  EXPECT_EQ(h.Do(StopRun{early}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Loop, RetryContinuesTheSameRunWithTheNextAttempt) {
  Harness h;
  const int64_t run = h.Submit();
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, 3));
  EXPECT_EQ(h.State(run), kFailed);
  const auto failed = h.store->GetRun(run).value();
  ASSERT_TRUE(h.Do(RetryRun{failed}).ok());
  EXPECT_EQ(h.sink.Last("launch").key, "tp-test-e1-1-s0-a2");
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, 3));
  // The first answer is stale: with it attempt 2 would be launched a second time.
  EXPECT_EQ(h.Do(RetryRun{failed}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(h.sink.Count("launch"), 2);
}

TEST(Loop, DryRunCreatesNothingAndNamesTheGates) {
  Harness h;
  h.Submit("h200:16");
  const auto answer = h.Preview(Harness::Job());
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->live->gates.at(0).size(), 1u);
  EXPECT_EQ(answer->live->gates[0][0].gate, core::GateKind::kCapacity);
  EXPECT_EQ(h.store->Load().value().runs.size(), 1u);
}

TEST(Loop, DryRunHasNoRequestIdToCollideWith) {
  Harness h;
  ASSERT_TRUE(h.Do(Harness::Job(), "dry-run").ok());
  const auto answer = h.Preview(Harness::Job());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->run, 0);
  ASSERT_TRUE(h.Preview(Harness::Job("h200:16")).ok());
  EXPECT_EQ(h.store->Load().value().runs.size(), 1u);
}

TEST(Loop, ShapeThatNoLongerResolvesHoldsUntilTheRegistryAllowsIt) {
  Harness h;
  h.Submit("h200:16");
  const int64_t waiting = h.Submit("h200:16");
  std::vector<std::string> told;
  h.loop->SetListener([&](const CommitNotice& notice) {
    for (const store::EventRow& event : notice.events) {
      if (event.run == waiting) told.push_back(event.event);
    }
  });
  auto smaller = std::make_shared<core::Registry>(*OneSeries(1));
  h.loop->Post(std::shared_ptr<const core::Registry>(smaller));
  h.Settle();
  EXPECT_FALSE(h.store->GetRun(waiting).value().steps[0].hold.shape.empty());
  EXPECT_EQ(told, std::vector<std::string>({"shape held"}));
  h.loop->Post(OneSeries(4));
  h.Settle();
  EXPECT_TRUE(h.store->GetRun(waiting).value().steps[0].hold.shape.empty());
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[1], "shape released");
  EXPECT_EQ(h.State(waiting), kSubmitted);
}

// What is in force at a start can be told from what was committed: events after an edit have greater revisions.
TEST(Loop, AnEditNamesTheNewestEventBeforeIt) {
  Harness h;
  h.Submit();
  const int64_t before = h.store->ReadMeta()->revision;
  SetQuota set;
  set.user = "ada";
  set.limits.jobs = 5;
  const auto ignore = [](const absl::StatusOr<Answer>&) {};
  h.loop->Post(Command{{"root", store::Role::kAdmin}, "edit", "SetQuota", "sha", set}, ignore);
  h.loop->Post(Command{{"ada", store::Role::kUser}, "job", "Submit", "sha", Harness::Job()}, ignore);
  const std::optional<store::Txn> txn = h.loop->Turn(h.now);
  ASSERT_TRUE(txn && !txn->audit.empty() && !txn->events.empty());
  EXPECT_EQ(txn->audit[0].detail, "quota of ada: jobs: 5; before: the deployment's defaults");
  EXPECT_EQ(txn->audit[0].revision, before);
  EXPECT_EQ(txn->events[0].revision, before + 1);
  ASSERT_TRUE(h.store->Commit(*txn).ok());
  h.loop->Committed();
}

TEST(Loop, CommitNoticesCarryTheEventsInOrder) {
  Harness h;
  std::vector<int64_t> revisions;
  h.loop->SetListener([&](const CommitNotice& notice) {
    for (const store::EventRow& event : notice.events) revisions.push_back(event.revision);
  });
  h.Submit();
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, 0));
  ASSERT_GE(revisions.size(), 5u);
  for (size_t i = 0; i < revisions.size(); ++i) EXPECT_EQ(revisions[i], static_cast<int64_t>(i) + 1);
}

TEST(Loop, StoreEqualsMemory) {
  Harness h;
  for (int i = 0; i < 5; ++i) h.Submit("h200:4");
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, std::nullopt));
  const auto loaded = h.store->Load().value();
  ASSERT_EQ(loaded.runs.size(), h.loop->runs().size());
  for (const core::RunWithSteps& run : loaded.runs) EXPECT_EQ(run, h.loop->runs().at(run.run.n));
}

}  // namespace
}  // namespace tp::loop::test
