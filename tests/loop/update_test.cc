// tp update, hold, rm over the loop: what is stored, what leaves, who may.
#include <algorithm>

#include <gmock/gmock.h>

#include "harness.h"

namespace tp::loop::test {
namespace {

using testing::HasSubstr;
using enum core::JobState;

using Flags = std::vector<std::string>;
using Labels = std::map<std::string, std::string>;

const Principal kAda = {"ada", store::Role::kUser};
const Principal kBob = {"bob", store::Role::kUser};
const Principal kOlga = {"olga", store::Role::kOperator};

class UpdateTest : public testing::Test {
 protected:
  core::RunWithSteps Stored(int64_t run) { return h.store->GetRun(run).value(); }

  absl::StatusOr<Answer> Update(int64_t run, core::Revision revision, Principal who = kAda,
                                const std::string& version = "") {
    return h.Do(UpdateRun{.stored = Stored(run), .revision = std::move(revision), .expected_version = version}, "",
                std::move(who));
  }
  absl::StatusOr<Answer> Remove(int64_t run, Principal who = kAda) {
    return h.Do(RemoveRun{.stored = Stored(run)}, "", std::move(who));
  }
  int64_t Over() {
    const int64_t run = h.Submit();
    h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(1, 3));
    EXPECT_EQ(h.State(run), kFailed);
    return run;
  }
  std::vector<std::string> Events(int64_t run) {
    std::vector<std::string> events;
    const auto rows = h.store->Events(run, 0, 100).value();
    for (const store::EventRow& row : rows) events.push_back(row.event);
    return events;
  }

  Harness h;
};

TEST_F(UpdateTest, AHeldRunWaitsUntilItIsReleased) {
  const int64_t first = h.Submit("h200:16");  // all there is
  const int64_t second = h.Submit("h200:8");
  const auto held = Update(second, {.hold = true});
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_EQ(held->live->gates[0].size(), 2U);
  EXPECT_EQ(held->live->gates[0][0].gate, core::GateKind::kHeld);
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(2, 0));
  EXPECT_EQ(h.State(first), kSucceeded);
  EXPECT_EQ(h.State(second), kQueued);
  h.Restart();
  h.Settle();
  EXPECT_EQ(h.State(second), kQueued) << "a hold outlives a restart";
  ASSERT_TRUE(Update(second, {.hold = false}).ok());
  EXPECT_EQ(h.State(second), kSubmitted);
}

TEST_F(UpdateTest, AnotherShapeIsLaunchedAtOnceWhereItFits) {
  h.Submit("h200:8");
  const int64_t waiting = h.Submit("h200:16");
  EXPECT_EQ(h.State(waiting), kQueued);
  ASSERT_TRUE(Update(waiting, {.profiles = Flags{"h200:8"}}).ok());
  EXPECT_EQ(h.State(waiting), kSubmitted);
  EXPECT_THAT(Events(waiting), testing::Contains("updated"));
}

TEST_F(UpdateTest, PriorityChangesTheOrder) {
  h.Submit("h200:16");
  const int64_t earlier = h.Submit("h200:16");
  const int64_t later = h.Submit("h200:16");
  ASSERT_TRUE(Update(earlier, {.priority = 10}).ok());
  h.Observe(h.sink.Last("launch").key, Harness::UpOrOver(2, 0));
  EXPECT_EQ(h.State(earlier), kQueued);
  EXPECT_EQ(h.State(later), kSubmitted);
}

TEST_F(UpdateTest, OnesOwnOrAsAnOperator) {
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:8");
  EXPECT_EQ(Update(run, {.priority = 10}, kBob).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Update(run, {.priority = 60}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Update(run, {.priority = 60}, kOlga).ok());
  EXPECT_EQ(Stored(run).run.priority, 60);
  ASSERT_TRUE(Update(run, {.hold = true}, kOlga).ok());
  EXPECT_TRUE(Stored(run).steps[0].hold.admin);
}

TEST_F(UpdateTest, AnotherVersionIsAConflict) {
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:8");
  const std::string version = core::VersionOf(Stored(run));
  ASSERT_TRUE(Update(run, {.priority = 10}, kAda, version).ok());
  EXPECT_EQ(Update(run, {.priority = 20}, kAda, version).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Stored(run).run.priority, 10);
}

TEST_F(UpdateTest, ARunThatIsOverIsChangedInTheStore) {
  const int64_t run = Over();
  const core::RunWithSteps stale = Stored(run);
  ASSERT_TRUE(Update(run, {.labels = Labels{{"a", "b"}}, .profiles = Flags{"h200:16"}}).ok());
  EXPECT_EQ(Stored(run).run.labels.at("a"), "b");
  EXPECT_EQ(h.State(run), kFailed);
  EXPECT_EQ(h.Do(RetryRun{stale}).status().code(), absl::StatusCode::kUnavailable) << "it would undo the change";
  ASSERT_TRUE(h.Do(RetryRun{Stored(run)}).ok());
  EXPECT_EQ(Stored(run).steps[0].attempt->cards(), 16);
}

TEST_F(UpdateTest, TheSameRequestIsAnsweredOnce) {
  h.Submit("h200:16");
  const int64_t run = h.Submit("h200:8");
  const UpdateRun update = {.stored = Stored(run), .revision = {.priority = 10}, .expected_version = ""};
  const auto first = h.Do(update, "same");
  const auto second = h.Do(update, "same");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->note, second->note);
}

TEST_F(UpdateTest, RemoveLeavesATombstoneAndOwesTheDirectory) {
  const int64_t run = Over();
  const size_t ledger = h.store->Ledger({}, 0, 10).value().size();
  const auto removed = Remove(run);
  ASSERT_TRUE(removed.ok()) << removed.status();
  const core::RunWithSteps tombstone = Stored(run);
  EXPECT_EQ(tombstone.run.removed_at, h.now);
  EXPECT_EQ(tombstone.steps[0].state, kFailed);
  EXPECT_THAT(Events(run), testing::Contains("removed"));
  EXPECT_EQ(h.store->Ledger({}, 0, 10).value().size(), ledger);
  EXPECT_TRUE(h.store->ListRuns({}, std::nullopt, 10).value().runs.empty());
  EXPECT_EQ(h.store->ListRuns({.with_removed = true}, std::nullopt, 10).value().runs.size(), 1U);
  EXPECT_FALSE(h.store->LastRun("ada").ok());

  EXPECT_EQ(h.sink.Last("remove").key, "run-1");
  const auto owed = h.store->Load().value().outbox;
  const auto directory = std::find_if(owed.begin(), owed.end(),
                                      [](const store::OutboxRow& row) { return row.backend == kStorageBackend; });
  ASSERT_NE(directory, owed.end());
  EXPECT_EQ(directory->target.attempt_dir, "/data/ada/train-1");
  h.Answer_(absl::OkStatus(), "remove");
  EXPECT_TRUE(h.store->Load().value().outbox.empty() || h.store->Load().value().outbox[0].backend != kStorageBackend);
}

TEST_F(UpdateTest, AnOwedRemovalOutlivesARestart) {
  const int64_t run = Over();
  ASSERT_TRUE(Remove(run).ok());
  const int before = h.sink.Count("remove");
  h.Restart();
  h.Settle();
  EXPECT_GT(h.sink.Count("remove"), before);
  EXPECT_EQ(h.sink.Last("remove").key, "run-1");
}

TEST_F(UpdateTest, OnlyWhatIsOverIsRemoved) {
  const int64_t run = h.Submit();
  const auto refused = Remove(run);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("train-1 is SUBMITTED"));
  EXPECT_FALSE(Stored(run).run.removed_at);
}

TEST_F(UpdateTest, RemoveIsForTheOwnerAndOperatorsAndForOnce) {
  const int64_t run = Over();
  EXPECT_EQ(Remove(run, kBob).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(Remove(run, kOlga).ok());
  const absl::Time first = *Stored(run).run.removed_at;
  h.now += absl::Hours(1);
  const auto again = Remove(run);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->note, "was removed before");
  EXPECT_EQ(Stored(run).run.removed_at, first);
}

TEST_F(UpdateTest, ATombstoneIsNotRetried) {
  const int64_t run = Over();
  const core::RunWithSteps stale = Stored(run);
  ASSERT_TRUE(Remove(run).ok());
  EXPECT_EQ(h.Do(RetryRun{Stored(run)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.Do(RetryRun{stale}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(h.sink.Count("launch"), 1);
}

TEST_F(UpdateTest, ASubmittedPriorityFollowsTheSameRule) {
  SubmitRun submit = Harness::Job();
  submit.priority = 90;
  EXPECT_EQ(h.Do(submit).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(h.Do(submit, "", kOlga).ok());
  submit.priority = 20;
  const auto low = h.Do(submit);
  ASSERT_TRUE(low.ok());
  EXPECT_EQ(Stored(low->run).run.priority, 20);
}

// Two reloads under one request id: the second is told what the first was, and its registry counts.
TEST_F(UpdateTest, AReloadedRegistryCountsWhateverBecomesOfItsRequest) {
  auto second = std::make_shared<core::Registry>(*OneSeries());
  second->version = 1;
  auto third = std::make_shared<core::Registry>(*OneSeries(4));
  third->version = 2;
  const Principal admin{"root", store::Role::kAdmin};
  ASSERT_TRUE(h.Do(ReloadRegistry{.registry = second, .answer = "first", .detail = ""}, "again", admin).ok());
  EXPECT_FALSE(h.Do(Harness::Job("h200:32")).ok()) << "two nodes have 16 cards";
  const auto repeated = h.Do(ReloadRegistry{.registry = third, .answer = "second", .detail = ""}, "again", admin);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ(repeated->note, "first");
  EXPECT_EQ(h.State(h.Submit("h200:32")), kSubmitted);
}

}  // namespace
}  // namespace tp::loop::test
