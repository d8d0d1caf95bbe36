// What both stores accept, refuse and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "author.h"
#include "either_store.h"
#include "random_values.h"

namespace tp::store {
namespace {

using core::JobState;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class CommitTest : public EitherStoreTest {
 protected:
  core::RunWithSteps Stored(int64_t n) {
    auto run = reader().GetRun(n);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *run : core::RunWithSteps{};
  }

  core::Step Stored(core::StepRef ref) { return Stored(ref.run).steps.at(static_cast<size_t>(ref.step)); }

  Loaded Load() {
    auto loaded = store().Load();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *loaded : Loaded{};
  }

  Author author_;
};
TP_BOTH_STORES(CommitTest);

TEST_P(CommitTest, ANewStoreIsEmpty) {
  EXPECT_EQ(Load(), Loaded{});
  EXPECT_EQ(*reader().Revision(), 0);
  EXPECT_EQ(*reader().ReadMeta(), Meta{});
  EXPECT_EQ(reader().GetRun(1).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(CommitTest, ReadsBackARunWithItsSteps) {
  core::Run run = author_.NewRun("ana", 2);
  Txn txn = author_.Take();
  txn.runs[0].labels = {{"team", "vision"}, {"", "empty key"}, {"bytes", "\xff"}};
  txn.runs[0].snapshot_available = false;
  txn.runs[0].priority = 70;
  txn.runs[0].notify = {{"chat", {core::NoticeEvent::kFailed, core::NoticeEvent::kPaused}}, {"\xff", {}}};
  Commit(txn);
  EXPECT_EQ(Stored(run.n), (core::RunWithSteps{txn.runs[0], txn.steps}));
  either_.Reopen();
  EXPECT_EQ(Stored(run.n), (core::RunWithSteps{txn.runs[0], txn.steps}));
}

// --- Changes of words -------------------------------------------------------------------------------

TEST_P(CommitTest, KeepsWhatRunsCameTo) {
  core::Run run = author_.NewRun("ana", 1, At(1));
  Txn txn = author_.Take();
  txn.runs[0].notify = {{"chat", {core::NoticeEvent::kFailed}}};
  run = txn.runs[0];
  core::Step step = txn.steps[0];
  step.spec.name = "train";
  txn.steps[0] = step;
  Commit(txn);
  step.pause.owner = true;
  step = author_.Enter(step, JobState::kPaused, At(2));
  Commit(author_.Take());
  step.pause.owner = false;
  step = author_.Enter(step, JobState::kQueued, At(3));
  step = author_.Enter(step, JobState::kRunning, At(4));  // in one commit: the word is RUNNING
  Commit(author_.Take());
  step.failure = core::Failure{core::FailureKind::kUserExit, "rank 0 ended with exit 3"};
  step.retry_count = 1;
  step = author_.Enter(step, JobState::kFailed, At(5));
  author_.AddEvent(step.ref, JobState::kFailed, JobState::kFailed, At(5));
  Commit(author_.Take());
  author_.Put(step);  // says nothing new
  author_.AddEvent(step.ref, JobState::kFailed, JobState::kFailed, At(6));
  Commit(author_.Take());

  either_.Reopen();
  const WordChange paused{{.revision = 1,
                           .at = At(2),
                           .run = run.n,
                           .step = "train",
                           .from = core::RunWord::kQueued,
                           .to = core::RunWord::kPaused,
                           .retry_count = 0,
                           .reason = "paused by its owner; tp resume continues it"},
                          run};
  const WordChange failed{{.revision = 5,
                           .at = At(5),
                           .run = run.n,
                           .step = "train",
                           .from = core::RunWord::kRunning,
                           .to = core::RunWord::kFailed,
                           .retry_count = 1,
                           .reason = "rank 0 ended with exit 3"},
                          run};
  EXPECT_THAT(*reader().WordChangesAfter(0, 10), ElementsAre(paused, failed));
  EXPECT_THAT(*reader().WordChangesAfter(0, 1), ElementsAre(paused));
  EXPECT_THAT(*reader().WordChangesAfter(1, 10), ElementsAre(failed));
  EXPECT_THAT(*reader().WordChangesAfter(5, 10), IsEmpty());
}

TEST_P(CommitTest, IdleCardsOfARunThatGoesOnAreToldOf) {
  const core::Run run = author_.NewRun("ana");
  Txn txn = author_.Take();
  core::Step step = txn.steps[0];
  step.spec.name = "train";
  Commit(txn);
  step = author_.Enter(step, JobState::kRunning, At(1));
  Commit(author_.Take());
  EXPECT_THAT(*reader().WordChangesAfter(0, 10), IsEmpty());
  author_.AddEvent(step.ref, JobState::kRunning, JobState::kRunning, At(9));
  author_.Put(step);
  txn = author_.Take();
  txn.events.back().event = kIdleEvent;
  Commit(txn);

  either_.Reopen();
  const WordChange idle{{.revision = 2,
                         .at = At(9),
                         .run = run.n,
                         .step = "train",
                         .from = core::RunWord::kRunning,
                         .to = core::RunWord::kRunning,
                         .retry_count = 0,
                         .reason = "note 2"},
                        run};
  EXPECT_THAT(*reader().WordChangesAfter(0, 10), ElementsAre(idle));
}

TEST_P(CommitTest, ARetryThatFailsAgainIsAnotherChange) {
  author_.NewRun("ana");
  Txn txn = author_.Take();
  core::Step step = txn.steps[0];
  Commit(txn);
  for (int i = 0; i < 2; ++i) {
    step.failure = core::Failure{core::FailureKind::kUserExit, "exit 1"};
    step = author_.Enter(step, JobState::kFailed, At(i));
    Commit(author_.Take());
    step.failure.reset();
    step = author_.Enter(step, JobState::kQueued, At(i));
    Commit(author_.Take());
  }
  EXPECT_EQ(reader().WordChangesAfter(0, 10)->size(), 2u);
}

TEST_P(CommitTest, OfAPipelineTheRunsWordCounts) {
  author_.NewRun("ana", 2);
  Txn txn = author_.Take();
  core::Step first = txn.steps[0];
  core::Step second = txn.steps[1];
  Commit(txn);
  author_.Enter(first, JobState::kSucceeded, At(1));
  Commit(author_.Take());
  EXPECT_THAT(*reader().WordChangesAfter(0, 10), IsEmpty());
  second.failure = core::Failure{core::FailureKind::kUserExit, "exit 1"};
  second.spec.name = "export";
  author_.Enter(second, JobState::kFailed, At(2));
  Commit(author_.Take());
  const auto changes = *reader().WordChangesAfter(0, 10);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].row.to, core::RunWord::kPartial);
  EXPECT_EQ(changes[0].row.step, "export");
  EXPECT_EQ(changes[0].row.reason, "exit 1");
}

TEST_P(CommitTest, ReadsBackAnyStepByteForByte) {
  RandomValues random(1);
  const core::Run run = author_.NewRun("ana", 1);
  Commit(author_.Take());
  for (int i = 0; i < 300; ++i) {
    core::Step step = random.Make<core::Step>();
    step.ref = {run.n, 0};
    step.spec.after.reset();
    if (step.attempt) step.attempt->key = "key " + std::to_string(i);
    author_.Put(step);
    Commit(author_.Take());
    ASSERT_EQ(Stored({run.n, 0}), step) << "value " << i;
  }
}

TEST_P(CommitTest, KeepsTimesToTheMicrosecond) {
  const absl::Time fine = At(0) + absl::Nanoseconds(1234);
  core::Run run = author_.NewRun("ana", 1, fine);
  Commit(author_.Take());
  EXPECT_EQ(Stored(run.n).run.created_at, At(0) + absl::Microseconds(1));
  EXPECT_EQ(Stored({run.n, 0}).created_at, At(0) + absl::Microseconds(1));
}

TEST_P(CommitTest, AStepReplacesTheOneBeforeAndItsAttemptGoesWithIt) {
  const core::Run run = author_.NewRun("ana");
  core::Step step = Author::QueuedStep({run.n, 0});
  step.attempt.emplace();
  step.attempt->key = "tp-lab-e1-1-s0-a1";
  step.state = JobState::kRunning;
  author_.Put(step);
  Commit(author_.Take());
  EXPECT_EQ(Stored(step.ref), step);

  step.attempt.reset();
  step.state = JobState::kFailed;
  step.failure = core::Failure{core::FailureKind::kUserExit, "exit 1"};
  author_.Put(step);
  Commit(author_.Take());
  EXPECT_EQ(Stored(step.ref), step);
}

TEST_P(CommitTest, ARunsOwnRowMayChangeWithoutItsSteps) {
  core::Run run = author_.NewRun("ana", 2);
  const std::vector<core::Step> steps = author_.Take().steps;
  author_.Put(run);
  for (const core::Step& step : steps) author_.Put(step);
  Commit(author_.Take());
  run.priority = 90;
  run.labels["new"] = "label";
  author_.Put(run);
  Commit(author_.Take());
  EXPECT_EQ(Stored(run.n), (core::RunWithSteps{run, steps}));
  run.labels.clear();
  author_.Put(run);
  Commit(author_.Take());
  EXPECT_EQ(Stored(run.n), (core::RunWithSteps{run, steps}));
}

TEST_P(CommitTest, TheLastOfTwoValuesOfAStepCounts) {
  const core::Run run = author_.NewRun("ana");
  core::Step step = Author::QueuedStep({run.n, 0});
  step = author_.Enter(step, JobState::kSubmitted, At(1));
  step = author_.Enter(step, JobState::kPending, At(2));
  Commit(author_.Take());
  EXPECT_EQ(Stored(step.ref), step);
}

TEST_P(CommitTest, LoadsUnfinishedRunsAndWhatIsOwed) {
  const core::Run finished = author_.NewRun("ana");
  const core::Run live = author_.NewRun("ben", 2);
  const core::Run paused = author_.NewRun("ana");
  Commit(author_.Take());
  author_.Enter(Author::QueuedStep({finished.n, 0}), JobState::kSucceeded, At(1));
  author_.Enter(Author::QueuedStep({live.n, 0}), JobState::kSucceeded, At(1));
  author_.Enter(Author::QueuedStep({paused.n, 0}), JobState::kPaused, At(1));
  const OutboxRow first = author_.Owe({{live.n, 1}, 1}, OutboxKind::kLaunch);
  const OutboxRow second = author_.Owe({{live.n, 1}, 1}, OutboxKind::kSignal);
  const OutboxRow third = author_.Owe({{live.n, 1}, 1}, OutboxKind::kRemove);
  Commit(author_.Take());
  author_.Paid(second.id);
  Commit(author_.Take());

  either_.Reopen();
  const Loaded loaded = Load();
  EXPECT_EQ(loaded.meta, author_.meta());
  ASSERT_EQ(loaded.runs.size(), 2u);
  EXPECT_EQ(loaded.runs[0], Stored(live.n));
  EXPECT_EQ(loaded.runs[1], Stored(paused.n));
  EXPECT_THAT(loaded.outbox, ElementsAre(first, third));
}

TEST_P(CommitTest, EffectsOwedAndPaidInOneCommitAreGone) {
  const OutboxRow row = author_.Owe({{1, 0}, 1}, OutboxKind::kFence);
  author_.Paid(row.id);
  author_.Paid(77);  // never owed
  Commit(author_.Take());
  EXPECT_THAT(Load().outbox, IsEmpty());
}

TEST_P(CommitTest, FindsRequestsSnapshotsAndTokens) {
  const RequestRow request{"ana", std::string("id\0with nul", 11), "SubmitRun", "abc", 7, "submitted"};
  const SnapshotRow snapshot{"sha", "ana", 1 << 30, 12, At(5)};
  const TokenRow token{"t1", "secret", "ana", Role::kOperator, At(6)};
  author_.Answer(request);
  author_.Keep(snapshot);
  author_.Grant(token);
  author_.Note({At(7), "ana", "SubmitRun", 7, "detail"});
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_EQ(*reader().FindRequest("ana", request.request_id), request);
  EXPECT_EQ(*reader().FindRequest("ana", "id"), std::nullopt);
  EXPECT_EQ(*reader().FindRequest("ben", request.request_id), std::nullopt);
  EXPECT_THAT(*reader().SnapshotsOf("ana", At(4)), ElementsAre("sha"));
  EXPECT_THAT(*reader().SnapshotsOf("ana", At(5)), IsEmpty());
  EXPECT_THAT(*reader().SnapshotsOf("ben", At(0)), IsEmpty());
  EXPECT_EQ(*reader().FindToken("t1"), token);
  EXPECT_EQ(*reader().FindToken("t2"), std::nullopt);
}

TEST_P(CommitTest, ASnapshotIsWhoeverCommittedItLastAndATokenIsReplaced) {
  author_.Keep({"sha", "ana", 10, 1, At(1)});
  author_.Grant({"t1", "old", "ana", Role::kUser, At(1)});
  Commit(author_.Take());
  const TokenRow renewed{"t1", "new", "ana", Role::kAdmin, At(2)};
  author_.Keep({"sha", "ben", 10, 1, At(2)});
  author_.Grant(renewed);
  Commit(author_.Take());
  EXPECT_THAT(*reader().SnapshotsOf("ana", At(0)), IsEmpty());
  EXPECT_THAT(*reader().SnapshotsOf("ben", At(1)), ElementsAre("sha"));
  EXPECT_EQ(*reader().FindToken("t1"), renewed);
}

TEST_P(CommitTest, OwnersAreThoseOfAllRuns) {
  EXPECT_THAT(*reader().Owners(), IsEmpty());
  for (const char* owner : {"ben", "ana", "ben", "", "zoe"}) author_.NewRun(owner);
  Txn txn = author_.Take();
  txn.runs[4].removed_at = At(1);
  Commit(txn);
  EXPECT_THAT(*reader().Owners(), ElementsAre("", "ana", "ben", "zoe"));
}

TEST_P(CommitTest, RunsNeedTheirSnapshotsUntilTheyAreRemoved) {
  core::Run first = author_.NewRun("ana");
  first.snapshot_id = "sha-1";
  core::Run second = author_.NewRun("ben");
  second.snapshot_id = "sha-1";
  core::Run third = author_.NewRun("ben");
  third.snapshot_id = "sha-2";
  core::Run without = author_.NewRun("ben");
  without.snapshot_id = "";
  Commit(author_.Take());
  for (const core::Run& run : {first, second, third, without}) author_.Put(run);
  Commit(author_.Take());
  EXPECT_THAT(*reader().NeededSnapshots(), UnorderedElementsAre("sha-1", "sha-2"));
  EXPECT_THAT(*reader().SnapshotsOf("ana", At(0)), ElementsAre("sha-1"));
  EXPECT_THAT(*reader().SnapshotsOf("ben", At(0)), UnorderedElementsAre("sha-1", "sha-2"));
  third.snapshot_available = false;
  second.removed_at = At(9);
  author_.Put(second);
  author_.Put(third);
  Commit(author_.Take());
  EXPECT_THAT(*reader().NeededSnapshots(), ElementsAre("sha-1"));
  EXPECT_THAT(*reader().SnapshotsOf("ben", At(0)), IsEmpty());
}

// --- Quotas, windows ------------------------------------------------------------------------------

core::QuotaRule Rule(int64_t id, const std::string& user, int64_t gpus) {
  core::QuotaRule rule;
  rule.id = id;
  rule.user = user;
  rule.set_at = At(id);
  rule.set_by = "root";
  rule.limits.gpus = gpus;
  return rule;
}

TEST_P(CommitTest, LoadsQuotaRulesById) {
  RandomValues random(3);
  core::QuotaRule any = random.Make<core::QuotaRule>();
  any.id = 7;
  any.from = absl::InfinitePast();
  any.until.reset();
  author_.Limit(any);
  author_.Limit(Rule(2, "ana", core::kNoLimit));
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_THAT(Load().quota_rules, ElementsAre(Rule(2, "ana", core::kNoLimit), any));

  author_.Limit(Rule(2, "ben", 3));
  author_.Limit(Rule(8, "ana", 4));
  author_.Limit(Rule(9, "ana", 5));
  author_.Unlimit(9);  // set and taken back in one commit
  author_.Unlimit(7);
  author_.Unlimit(77);  // never set
  Commit(author_.Take());
  EXPECT_THAT(Load().quota_rules, ElementsAre(Rule(2, "ben", 3), Rule(8, "ana", 4)));
}

TEST_P(CommitTest, QuotaRulesAreKeptToTheMicrosecond) {
  core::QuotaRule rule = Rule(1, "ana", 1);
  rule.from = At(1) + absl::Nanoseconds(1999);
  rule.until = absl::InfiniteFuture();
  author_.Limit(rule);
  Commit(author_.Take());
  rule.from = At(1) + absl::Microseconds(1);
  EXPECT_THAT(Load().quota_rules, ElementsAre(rule));
}

TEST_P(CommitTest, LoadsTheLastFoundUseOfStorageAndTheLastHolds) {
  author_.Measure({"ana", {1 << 20, At(1)}});
  author_.Measure({"", {0, At(1)}});
  author_.HoldOpen({"h200", At(50), "root"});
  author_.HoldOpen({"a100", At(60), "root"});
  Commit(author_.Take());
  author_.Measure({"ana", {1 << 30, At(2) + absl::Nanoseconds(1500)}});
  author_.HoldOpen({"h200", At(5), "ben"});
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_THAT(Load().storage_use, ElementsAre(StorageUseRow{"", {0, At(1)}},
                                              StorageUseRow{"ana", {1 << 30, At(2) + absl::Microseconds(1)}}));
  EXPECT_THAT(Load().window_holds,
              ElementsAre(WindowHoldRow{"a100", At(60), "root"}, WindowHoldRow{"h200", At(5), "ben"}));
}

TEST_P(CommitTest, LoadsMarksAndStrikesThatStillCount) {
  const core::NodeMark drained{{.node = "n1"}, core::MarkKind::kDrained, "it's \"new\"", "root", At(1)};
  const core::NodeMark card{{.node = "n1", .card = 3}, core::MarkKind::kDrained, "Xid 79", "tpd", At(1)};
  core::NodeMark dead{{.node = "n2"}, core::MarkKind::kDrained, "", "root", At(1)};
  const core::Strike old{"n1", {{1, 0}, 1}, "ana", core::FailureKind::kLost, At(1)};
  const core::Strike later{"n1", {{2, 0}, 4}, "ben", core::FailureKind::kGpuLost, At(1) + core::kStrikeLife};
  const core::Strike other{"n2", {{1, 0}, 1}, "ana", core::FailureKind::kNodeLost, At(2)};
  author_.Mark(drained);
  author_.Mark(card);
  author_.Mark(dead);
  author_.Strike(old);
  author_.Strike(other);
  Commit(author_.Take());
  dead.kind = core::MarkKind::kDead;
  author_.Mark(dead);
  author_.Clear(card.part);
  author_.Strike(later);
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_THAT(Load().node_marks, ElementsAre(drained, dead));
  EXPECT_THAT(Load().strikes, ElementsAre(later, other));
  author_.ForgetStrikes("n1");
  Commit(author_.Take());
  EXPECT_THAT(Load().strikes, ElementsAre(other));
}

core::Correction AnyCorrection(RandomValues& random, const std::string& key) {
  core::Correction correction = random.Make<core::Correction>();
  correction.target.key = key;
  return correction;
}

TEST_P(CommitTest, LoadsCorrectionsThatAreOwedByKey) {
  RandomValues random(11);
  const core::Correction first = AnyCorrection(random, "tp-lab-e1-1-s0-a1");
  core::Correction second = AnyCorrection(random, "tp-lab-e1-1-s0-a2");
  second.created_at = At(1) + absl::Nanoseconds(1500);
  author_.Await(second);
  author_.Await(first);
  Commit(author_.Take());
  either_.Reopen();
  second.created_at = At(1) + absl::Microseconds(1);
  EXPECT_THAT(Load().corrections, ElementsAre(first, second));

  const core::Correction changed = AnyCorrection(random, second.target.key);
  author_.Await(changed);
  author_.Await(AnyCorrection(random, "in and out"));
  author_.Awaited("in and out");
  author_.Awaited(first.target.key);
  author_.Awaited("never owed");
  Commit(author_.Take());
  EXPECT_THAT(Load().corrections, ElementsAre(changed));
}

TEST_P(CommitTest, LoadsWhatTheNewestTwoMonthsCameTo) {
  constexpr int64_t kMonth = 31 * 24 * 3600;
  author_.Bill(1, "ana", At(0), At(10), 8);
  Commit(author_.Take());
  EXPECT_THAT(Load().month_use, ElementsAre(MonthUseRow{"2026-01", "ana", 80'000}));
  author_.Bill(2, "ben", At(kMonth), At(kMonth + 1), 2);
  core::LedgerRow row = author_.Bill(3, "ana", At(2 * kMonth), At(2 * kMonth + 10), 1);
  author_.Bill(4, "ana", At(2 * kMonth), At(2 * kMonth + 10), 1);
  row.delta = true;
  row.start_unix_ms += 10'000;
  row.end_unix_ms -= 4'000;
  author_.Bill(row);
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_THAT(Load().month_use,
              ElementsAre(MonthUseRow{"2026-02", "ben", 2000}, MonthUseRow{"2026-03", "ana", 16'000}));
}

TEST_P(CommitTest, LoadsWhatEachHourOfTheNewestTwoMonthsCameTo) {
  constexpr int64_t kMonth = 31 * 24 * 3600;
  const auto hour = [](int64_t seconds) { return absl::ToUnixMillis(At(seconds)); };
  EXPECT_THAT(Load().hour_use, IsEmpty());
  author_.Bill(1, "ana", At(0), At(10), 8);
  Commit(author_.Take());
  EXPECT_THAT(Load().hour_use, ElementsAre(HourUseRow{hour(0), "ana", 80'000}));
  author_.Bill(2, "ben", At(kMonth), At(kMonth + 3600), 2);  // at the hour sharp: it is the next one's
  author_.Bill(3, "ben", At(kMonth + 10), At(kMonth + 3599), 1);
  author_.Bill(4, "ben", At(kMonth), At(kMonth + 100), 0);
  author_.Bill(5, "cat", At(kMonth), At(kMonth + 100), 0);  // no cards, no use
  author_.Bill(6, "ben", At(2 * kMonth), At(2 * kMonth + 7210), 1);
  author_.Bill(7, "ana", At(2 * kMonth), At(2 * kMonth + 7220), 1);
  author_.Bill(8, "ana", At(2 * kMonth + 7200), At(2 * kMonth + 7201), 3);
  Commit(author_.Take());
  either_.Reopen();
  EXPECT_THAT(Load().hour_use,
              ElementsAre(HourUseRow{hour(kMonth), "ben", 3'589'000}, HourUseRow{hour(kMonth + 3600), "ben", 7'200'000},
                          HourUseRow{hour(2 * kMonth + 7200), "ana", 7'223'000},
                          HourUseRow{hour(2 * kMonth + 7200), "ben", 7'210'000}));
}

TEST_P(CommitTest, EventsComeInOrderAndByPages) {
  for (int64_t run : {1, 2, 1, 2, 1}) author_.AddEvent({run, 0}, JobState::kQueued, JobState::kPaused);
  const Txn txn = author_.Take();
  Commit(txn);
  const std::vector<EventRow>& events = txn.events;
  EXPECT_THAT(*reader().EventsAfter(0, 10), testing::ElementsAreArray(events));
  EXPECT_THAT(*reader().EventsAfter(1, 2), ElementsAre(events[1], events[2]));
  EXPECT_THAT(*reader().EventsAfter(5, 2), IsEmpty());
  EXPECT_THAT(*reader().Events(1, 0, 10), ElementsAre(events[0], events[2], events[4]));
  EXPECT_THAT(*reader().Events(1, 1, 1), ElementsAre(events[2]));
  EXPECT_EQ(*reader().Revision(), 5);
  EXPECT_EQ(reader().Events(1, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- Refused --------------------------------------------------------------------------------------

class RefusedTest : public CommitTest {
 protected:
  void SetUp() override {
    author_.NewRun("ana", 2);
    author_.Owe({{1, 0}, 1}, OutboxKind::kLaunch);
    author_.Bill(1, "ana", At(0), At(10), 8);
    author_.Answer({"ana", "r1", "SubmitRun", "", 1, ""});
    Commit(author_.Take());
    before_ = Load();
  }

  // Refused, and nothing of it is there.
  void Refuse(const Txn& txn) {
    EXPECT_FALSE(store().Commit(txn).ok());
    EXPECT_EQ(Load(), before_);
    either_.Reopen();
    EXPECT_EQ(Load(), before_);
    EXPECT_TRUE(CheckLedger(reader()).ok());
    EXPECT_THAT(*reader().EventsAfter(0, 10), IsEmpty());
  }

  Loaded before_;
};
TP_BOTH_STORES(RefusedTest);

TEST_P(RefusedTest, AnotherEpoch) {
  Txn txn = author_.Take();
  txn.meta.epoch = 2;
  Refuse(txn);
}

TEST_P(RefusedTest, CountersThatGoBack) {
  Txn txn = author_.Take();
  txn.meta.next_run -= 1;
  Refuse(txn);
  txn = author_.Take();
  txn.meta.next_outbox -= 1;
  Refuse(txn);
}

TEST_P(RefusedTest, AGapOrARepetitionInTheRevisions) {
  author_.AddEvent({1, 0}, JobState::kQueued, JobState::kPaused);
  author_.AddEvent({1, 0}, JobState::kPaused, JobState::kQueued);
  const Txn good = author_.Take();
  Txn txn = good;
  txn.events[1].revision = 3;
  Refuse(txn);
  txn = good;
  txn.events[1].revision = 1;
  Refuse(txn);
  txn = good;
  txn.meta.revision = 3;
  Refuse(txn);
}

TEST_P(RefusedTest, AStepWithoutItsRun) {
  author_.Put(Author::QueuedStep({9, 0}));
  Refuse(author_.Take());
}

TEST_P(RefusedTest, ARunWithoutSteps) {
  author_.NewRun("ana", 0);
  Refuse(author_.Take());
}

TEST_P(RefusedTest, AMissingStep) {
  author_.NewRun("ana", 1);
  author_.Put(Author::QueuedStep({2, 2}));
  Refuse(author_.Take());
  author_.Put(Author::QueuedStep({1, -1}));
  Refuse(author_.Take());
}

TEST_P(RefusedTest, AStepThatWaitsForNone) {
  core::Step step = Author::QueuedStep({1, 0});
  step.spec.after = core::After{2, core::AfterWhen::kAlways};
  author_.Put(step);
  Refuse(author_.Take());
}

TEST_P(RefusedTest, ARunNumberThatWasNotAllotted) {
  author_.NewRun("ana");
  Txn txn = author_.Take();
  txn.meta.next_run = 2;
  Refuse(txn);
}

TEST_P(RefusedTest, AnOutboxIdUsedBefore) {
  author_.Owe({{1, 0}, 1}, OutboxKind::kFence);
  Txn txn = author_.Take();
  txn.outbox_added[0].id = 1;
  Refuse(txn);
}

TEST_P(RefusedTest, ARequestAnsweredBefore) {
  author_.Answer({"ana", "r1", "StopRun", "", 1, ""});
  Refuse(author_.Take());
}

TEST_P(RefusedTest, ALedgerRowThatDoesNotContinueTheChain) {
  author_.Bill(2, "ana", At(0), At(10), 8);
  const Txn good = author_.Take();
  Txn txn = good;
  txn.ledger[0].cards = 9;
  Refuse(txn);
  txn = good;
  txn.ledger[0].seq = 3;
  Refuse(txn);
  txn = good;
  txn.ledger.clear();
  Refuse(txn);
}

TEST_P(RefusedTest, AnAttemptBilledTwice) {
  author_.Bill(1, "ana", At(0), At(10), 8);
  Refuse(author_.Take());
}

TEST_P(RefusedTest, AQuotaRuleWithoutIdOrTime) {
  author_.Limit(Rule(0, "ana", 1));
  Refuse(author_.Take());
  core::QuotaRule rule = Rule(1, "ana", 1);
  rule.from = At(1) + absl::Nanoseconds(1);
  rule.until = At(1) + absl::Nanoseconds(2);  // the same microsecond
  author_.Limit(rule);
  Refuse(author_.Take());
}

TEST_P(RefusedTest, StorageBelowNothing) {
  author_.Measure({"ana", {-1, At(1)}});
  Refuse(author_.Take());
}

TEST_P(RefusedTest, WhatWasWrittenOfOtherTablesGoesWhenARequestIsRefused) {
  author_.NewRun("ben");
  author_.AddEvent({2, 0}, JobState::kQueued, JobState::kPaused);
  author_.Owe({{2, 0}, 1}, OutboxKind::kLaunch);
  author_.Keep({"sha", "ben", 1, 1, At(0)});
  author_.Grant({"t", "s", "ben", Role::kUser, At(0)});
  author_.Limit(Rule(1, "ben", 1));
  author_.Measure({"ben", {1, At(0)}});
  author_.HoldOpen({"h200", At(9), "root"});
  RandomValues random(12);
  author_.Await(AnyCorrection(random, "tp-lab-e1-2-s0-a1"));
  author_.Bill(2, "ben", At(0), At(1), 1);
  author_.Answer({"ana", "r1", "StopRun", "", 1, ""});
  Refuse(author_.Take());
  EXPECT_THAT(*reader().SnapshotsOf("ben", At(-1)), IsEmpty());
  EXPECT_EQ(*reader().FindToken("t"), std::nullopt);
}

// --- Epochs ---------------------------------------------------------------------------------------

TEST_P(CommitTest, ANewEpochGoesOnBehindTheMark) {
  author_.NewRun("ana");
  author_.AddEvent({1, 0}, JobState::kQueued, JobState::kQueued);
  Commit(author_.Take());
  ASSERT_TRUE(store().BeginEpoch(2, 5000).ok());
  either_.Reopen();
  Author next(Load().meta);
  EXPECT_EQ(next.meta().epoch, 2);
  EXPECT_EQ(next.NewRun("ana").n, 5000);
  Commit(next.Take());
  EXPECT_EQ(Load().runs.size(), 2u);
  EXPECT_FALSE(store().BeginEpoch(2, 6000).ok());
  EXPECT_FALSE(store().BeginEpoch(3, 10).ok());
  EXPECT_EQ(Load().meta, next.meta());
}

// --- The twins ------------------------------------------------------------------------------------

void SetAtRandom(Author& author, RandomValues& random) {
  core::QuotaRule rule = random.Make<core::QuotaRule>();
  rule.id = static_cast<int64_t>(random.Below(8));
  author.Limit(rule);
  author.Unlimit(static_cast<int64_t>(random.Below(8)));
  StorageUseRow use{random.Below(2) == 0 ? "ana" : "", random.Make<core::StorageUse>()};
  use.use.bytes = std::max<int64_t>(use.use.bytes, 0);
  author.Measure(use);
  author.HoldOpen({random.Below(2) == 0 ? "h200" : "a100", random.Make<absl::Time>(), "root"});
  author.Await(AnyCorrection(random, std::to_string(random.Below(4))));
  author.Awaited(std::to_string(random.Below(4)));
}

// Whatever one of them accepts and answers, so does the other.
TEST(Twins, AgreeOnRandomHistories) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EitherStore memory(Kind::kMemory);
    EitherStore sqlite(Kind::kSqlite);
    RandomValues random(seed);
    Author author;
    for (int commit = 0; commit < 40; ++commit) {
      const Author before = author;
      if (random.Below(3) == 0) SetAtRandom(author, random);
      for (uint64_t changes = random.Below(4); changes > 0; --changes) {
        if (author.meta().next_run == 1 || random.Below(3) == 0) {
          author.NewRun(random.Below(2) == 0 ? "ana" : "ben", static_cast<int>(random.Below(3)),
                        At(static_cast<int64_t>(random.Below(100))));
          continue;
        }
        const auto n = static_cast<int64_t>(random.Below(static_cast<uint64_t>(author.meta().next_run))) + 1;
        core::Step step = Author::QueuedStep({n, static_cast<int32_t>(random.Below(3))});
        author.Enter(step, random.Make<JobState>(), At(static_cast<int64_t>(random.Below(100))));
      }
      const Txn txn = author.Take();
      const absl::Status status = memory.store().Commit(txn);
      ASSERT_EQ(sqlite.store().Commit(txn).ok(), status.ok()) << "seed " << seed << " commit " << commit << status;
      if (!status.ok()) author = before;
      ASSERT_EQ(*sqlite.store().Load(), *memory.store().Load());
      RunFilter filter;
      if (random.Below(2) == 0) filter.owner = "ana";
      if (random.Below(2) == 0) filter.words = {random.Make<core::RunWord>(), random.Make<core::RunWord>()};
      if (random.Below(2) == 0) filter.changed_after = At(static_cast<int64_t>(random.Below(100)));
      const int limit = static_cast<int>(random.Below(5)) + 1;
      const RunPage expected = *memory.reader().ListRuns(filter, std::nullopt, limit);
      const RunPage page = *sqlite.reader().ListRuns(filter, std::nullopt, limit);
      ASSERT_EQ(page.runs, expected.runs) << "seed " << seed << " commit " << commit;
      ASSERT_EQ(page.summaries, expected.summaries);
      ASSERT_EQ(*sqlite.reader().MonthUse(), *memory.reader().MonthUse());
      ASSERT_EQ(page.next_before, expected.next_before);
    }
  }
}

TEST(MemoryStore, ACloneGoesItsOwnWay) {
  MemoryStore store;
  Author author;
  author.NewRun("ana");
  ASSERT_TRUE(store.Commit(author.Take()).ok());
  const std::unique_ptr<MemoryStore> clone = store.Clone();
  author.NewRun("ana");
  ASSERT_TRUE(store.Commit(author.Take()).ok());
  EXPECT_EQ(store.Load()->runs.size(), 2u);
  EXPECT_EQ(clone->Load()->runs.size(), 1u);
}

}  // namespace
}  // namespace tp::store
