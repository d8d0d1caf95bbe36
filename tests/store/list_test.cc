// Pages of runs: a total order, every filter, a cost that does not follow the number of runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "author.h"
#include "either_store.h"
#include "random_values.h"
#include "store/micros.h"
#include "store/sqlite_rows.h"

namespace tp::store {
namespace {

using core::JobState;
using core::RunWord;
using testing::ElementsAre;
using testing::IsEmpty;

class ListTest : public EitherStoreTest {
 protected:
  std::vector<int64_t> List(const RunFilter& filter, int limit = 100) {
    const auto page = reader().ListRuns(filter, std::nullopt, limit);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<int64_t> numbers;
    if (page.ok()) {
      for (const core::RunWithSteps& run : page->runs) numbers.push_back(run.run.n);
    }
    return numbers;
  }

  int64_t Add(const std::string& owner, JobState state, absl::Time at = At(0)) {
    const core::Run run = author_.NewRun(owner, 1, at);
    author_.Enter(Author::QueuedStep({run.n, 0}, at), state, at);
    Commit(author_.Take());
    return run.n;
  }

  void Move(int64_t run, JobState to, absl::Time at) {
    author_.Enter(Author::QueuedStep({run, 0}), to, at);
    Commit(author_.Take());
  }

  Author author_;
};
TP_BOTH_STORES(ListTest);

TEST_P(ListTest, NothingInAnEmptyStore) {
  EXPECT_THAT(List({}), IsEmpty());
  EXPECT_EQ(reader().LastRun("ana").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ListTest, TombstonesAreHiddenUnlessAskedFor) {
  const int64_t kept = Add("ana", JobState::kFailed);
  const int64_t removed = Add("ana", JobState::kFailed, At(5));
  core::Run run = reader().GetRun(removed)->run;
  run.removed_at = At(9);
  author_.Put(run);
  Commit(author_.Take());
  EXPECT_THAT(List({}), ElementsAre(kept));
  EXPECT_THAT(List({.with_removed = true}), ElementsAre(removed, kept));
  EXPECT_EQ(*reader().LastRun("ana"), kept);
  EXPECT_EQ(reader().GetRun(removed)->run.removed_at, At(9));
  EXPECT_THAT(List({.changed_after = At(4), .with_removed = true}), ElementsAre(removed))
      << "removing it did not change its word";
  EXPECT_THAT(List({.changed_after = At(6), .with_removed = true}), IsEmpty());
}

TEST_P(ListTest, QueuedStepsAreThoseThatWaitForNoOther) {
  const int64_t plain = Add("ana", JobState::kQueued, At(3));
  Add("ana", JobState::kRunning);
  Add("ana", JobState::kStopped);
  core::Run pipeline = author_.NewRun("bob", 0, At(4));
  pipeline.priority = 70;
  author_.Put(pipeline);
  const auto put = [&](int32_t index, JobState state, std::optional<core::After> after) {
    core::Step step = Author::QueuedStep({pipeline.n, index}, At(4));
    step.spec.after = after;
    step.spec.profiles = {"h200:8", "a=\"x\":1"};
    step.hold.owner = index == 3;
    author_.Enter(step, state, At(4));
  };
  put(0, JobState::kSucceeded, std::nullopt);
  put(1, JobState::kQueued, core::After{0, core::AfterWhen::kSuccess});
  put(2, JobState::kQueued, core::After{1, core::AfterWhen::kAlways});
  put(3, JobState::kQueued, std::nullopt);
  // Runs that come after others, and an array of which one task may be live.
  int64_t last = 0;
  for (const bool over : {false, true}) {
    core::Run later = author_.NewRun("eve", 0, At(5));
    later.after.emplace_back().run = plain;
    later.after[0].id = "train-1";
    later.after[0].when = core::AfterWhen::kAlways;
    if (over) later.after[0].outcome = core::RunWord::kFailed;
    if (over) later.array_limit = 1;
    author_.Put(later);
    for (int32_t task = 0; task < (over ? 3 : 1); ++task) {
      core::Step step = Author::QueuedStep({later.n, task}, At(5));
      step.spec.after.reset();
      if (over) step.spec.array_index = task;
      author_.Enter(step, JobState::kQueued, At(5));
    }
    last = later.n;
  }
  Commit(author_.Take());
  const auto queued = reader().QueuedSteps();
  ASSERT_TRUE(queued.ok()) << queued.status();
  const std::vector<std::string> profiles = {"h200:8", "a=\"x\":1"};
  EXPECT_THAT(
      *queued,
      ElementsAre(
          QueuedStepRow{
              .ref = {plain, 0}, .owner = "ana", .priority = 50, .submitted_at = At(3), .held = false, .profiles = {}},
          QueuedStepRow{{pipeline.n, 1}, "bob", 70, At(4), false, profiles},
          QueuedStepRow{{pipeline.n, 3}, "bob", 70, At(4), true, profiles},
          QueuedStepRow{{last, 0}, "eve", 50, At(5), false, {}}));
}

TEST_P(ListTest, PagesAreTheWholeListNewestFirst) {
  std::vector<int64_t> expected;
  for (int i = 0; i < 23; ++i) expected.insert(expected.begin(), Add("ana", JobState::kQueued));
  for (const int limit : {1, 5, 22, 23, 24}) {
    std::vector<int64_t> seen;
    std::optional<int64_t> before;
    do {
      const auto page = reader().ListRuns({}, before, limit);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_LE(page->runs.size(), static_cast<size_t>(limit));
      for (const core::RunWithSteps& run : page->runs) seen.push_back(run.run.n);
      before = page->next_before;
    } while (before);
    EXPECT_EQ(seen, expected) << "in pages of " << limit;
  }
  EXPECT_EQ(reader().ListRuns({}, std::nullopt, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ListTest, RunsAddedMeanwhileDoNotShiftPages) {
  for (int i = 0; i < 4; ++i) Add("ana", JobState::kQueued);
  const RunPage first = *reader().ListRuns({}, std::nullopt, 2);
  Add("ana", JobState::kQueued);
  const RunPage second = *reader().ListRuns({}, first.next_before, 2);
  EXPECT_EQ(second.runs[0].run.n, 2);
  EXPECT_EQ(second.runs[1].run.n, 1);
  EXPECT_FALSE(second.next_before.has_value());
}

TEST_P(ListTest, ByOwnerProjectAndWord) {
  const int64_t a = Add("ana", JobState::kQueued);
  const int64_t b = Add("ben", JobState::kRunning);
  const int64_t c = Add("ana", JobState::kFailed);
  EXPECT_THAT(List({.owner = "ana"}), ElementsAre(c, a));
  EXPECT_THAT(List({.project = "ben-project"}), ElementsAre(b));
  EXPECT_THAT(List({.owner = "ana", .project = "ben-project"}), IsEmpty());
  EXPECT_THAT(List({.words = {RunWord::kRunning, RunWord::kQueued}}), ElementsAre(b, a));
  EXPECT_THAT(List({.owner = "ana", .words = {RunWord::kFailed}}), ElementsAre(c));
  EXPECT_THAT(List({.owner = "an"}), IsEmpty());
  EXPECT_EQ(*reader().LastRun("ana"), c);
  EXPECT_EQ(*reader().LastRun("ben"), b);
}

TEST_P(ListTest, ByLabelsAllOfWhichMustMatch) {
  for (const std::string team : {"vision", "speech", "vision"}) {
    core::Run run = author_.NewRun("ana");
    run.labels = {{"team", team}, {"n", std::to_string(run.n)}};
    author_.Put(run);
    Commit(author_.Take());
  }
  EXPECT_THAT(List({.labels = {{"team", "vision"}}}), ElementsAre(3, 1));
  EXPECT_THAT(List({.labels = {{"team", "vision"}, {"n", "1"}}}), ElementsAre(1));
  EXPECT_THAT(List({.labels = {{"team", "speech"}, {"n", "1"}}}), IsEmpty());
  EXPECT_THAT(List({.labels = {{"missing", ""}}}), IsEmpty());
}

TEST_P(ListTest, ChangedAfterShowsTheUnfinishedAndTheRecent) {
  const int64_t old_queued = Add("ana", JobState::kQueued, At(0));
  const int64_t old_failed = Add("ana", JobState::kFailed, At(0));
  const int64_t new_failed = Add("ben", JobState::kFailed, At(100));
  EXPECT_THAT(List({.changed_after = At(50)}), ElementsAre(new_failed, old_queued));
  EXPECT_THAT(List({.changed_after = At(100)}), ElementsAre(old_queued));
  EXPECT_THAT(List({.owner = "ana", .changed_after = At(50)}), ElementsAre(old_queued));
  EXPECT_THAT(List({.words = {RunWord::kFailed}, .changed_after = At(-1)}), ElementsAre(new_failed, old_failed));
}

// The word's time is that of its change, not that of every commit about the run.
TEST_P(ListTest, ChangedAfterFollowsTheWordOnly) {
  const int64_t n = Add("ana", JobState::kFailed, At(10));
  core::Step step = Author::QueuedStep({n, 0});
  step.state = JobState::kFailed;
  step.entered_at = At(500);
  author_.Put(step);
  Commit(author_.Take());
  EXPECT_THAT(List({.changed_after = At(10)}), IsEmpty());
  Move(n, JobState::kQueued, At(600));
  EXPECT_THAT(List({.changed_after = At(700)}), ElementsAre(n));
  Move(n, JobState::kSucceeded, At(650));
  EXPECT_THAT(List({.changed_after = At(649)}), ElementsAre(n));
  EXPECT_THAT(List({.changed_after = At(650)}), IsEmpty());
}

// One step of a pipeline changes; the word is that of all its steps.
TEST_P(ListTest, TheWordIsThatOfAllSteps) {
  const core::Run run = author_.NewRun("ana", 3);
  Commit(author_.Take());
  const auto enter = [&](int32_t index, JobState state) {
    author_.Enter(Author::QueuedStep({run.n, index}), state, At(index));
    Commit(author_.Take());
  };
  enter(0, JobState::kRunning);
  EXPECT_THAT(List({.words = {RunWord::kRunning}}), ElementsAre(run.n));
  enter(0, JobState::kSucceeded);
  EXPECT_THAT(List({.words = {RunWord::kQueued}}), ElementsAre(run.n));
  enter(1, JobState::kSucceeded);
  enter(2, JobState::kSucceeded);
  EXPECT_THAT(List({.words = {RunWord::kSucceeded}}), ElementsAre(run.n));
}

// Whatever the filter, the pages hold what a plain reading of it would pick.
TEST_P(ListTest, RandomFiltersPickWhatTheirDefinitionSays) {
  RandomValues random(3);
  struct Known {
    core::Run run;
    RunWord word;
    absl::Time changed_at;
  };
  std::vector<Known> known;
  for (int i = 0; i < 120; ++i) {
    core::Run run = author_.NewRun(random.Below(2) == 0 ? "ana" : "ben");
    if (random.Below(2) == 0) run.labels["team"] = random.Below(2) == 0 ? "vision" : "speech";
    author_.Put(run);
    const auto state = random.Make<JobState>();
    const absl::Time at = At(static_cast<int64_t>(random.Below(50)));
    author_.Enter(Author::QueuedStep({run.n, 0}), state, at);
    known.push_back({run, static_cast<RunWord>(state), at});
  }
  Commit(author_.Take());
  for (int i = 0; i < 300; ++i) {
    RunFilter filter;
    if (random.Below(2) == 0) filter.owner = random.Below(2) == 0 ? "ana" : "ben";
    if (random.Below(3) == 0) filter.project = "ana-project";
    if (random.Below(2) == 0) filter.words = {random.Make<RunWord>(), random.Make<RunWord>()};
    if (random.Below(2) == 0) filter.changed_after = At(static_cast<int64_t>(random.Below(50)));
    if (random.Below(3) == 0) filter.labels["team"] = "vision";
    std::vector<int64_t> expected;
    for (const Known& one : known) {
      const bool word = filter.words.empty() || one.word == filter.words[0] || one.word == filter.words[1];
      const bool recent =
          !filter.changed_after || one.word <= RunWord::kPaused || one.changed_at > *filter.changed_after;
      const bool label = filter.labels.empty() || one.run.labels == filter.labels;
      if (word && recent && label && filter.owner.value_or(one.run.owner) == one.run.owner &&
          filter.project.value_or(one.run.project) == one.run.project) {
        expected.insert(expected.begin(), one.run.n);
      }
    }
    ASSERT_EQ(List(filter, 200), expected) << "filter " << i;
  }
}

// --- Cost -----------------------------------------------------------------------------------------

constexpr int kRuns = 100'000;
constexpr int kPageRuns = 50;

// In steps of SQLite's virtual machine, a multiple of the rows it visits: a page is some thousands, a
// scan over all runs more than half a million.
constexpr int64_t kPageSteps = 40'000;

// 100,000 runs, of which 20 are unfinished and the newest 10 have just changed. Straight into the tables,
// after the pattern of the first: what is measured is reading.
void Fill(SqliteStore& store) {
  Author author;
  core::Run run = author.NewRun("owner-0");
  run.labels["rare"] = "yes";
  author.Put(run);
  ASSERT_TRUE(store.Commit(author.Take()).ok());
  const absl::Status status = store.database().Execute(fmt::format(
      R"sql(
        BEGIN;
        CREATE TEMP TABLE number AS
          WITH RECURSIVE counted (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < {0} - 1)
          SELECT i FROM counted;
        INSERT INTO run
          SELECT i + 1, slug, 'owner-' || (i % 50), 'owner-' || (i % 50) || '-project', snapshot_id, priority,
                 created_at_us, snapshot_available,
                 CASE WHEN i % 5000 = 0 THEN 'QUEUED' WHEN i % 500 = 1 THEN 'FAILED' ELSE 'SUCCEEDED' END,
                 iif(i < {0} - 10, {1}, {2}), 0, NULL, after_runs, array_limit, notify
          FROM run, number WHERE n = 1;
        INSERT INTO run_label SELECT i + 1, 'rare', 'yes' FROM number WHERE i % 1000 = 0;
        CREATE TEMP TABLE pattern AS SELECT * FROM step;
        INSERT INTO step SELECT i + 1, {3} FROM pattern, number;
        COMMIT;
      )sql",
      kRuns, ToMicros(At(0)), ToMicros(At(1'000'000)), kStepColumns.substr(kStepColumns.find("step"))));
  ASSERT_TRUE(status.ok()) << status;
}

QueryCost Since(const QueryCost& now, const QueryCost& start) {
  return {now.statements - start.statements, now.steps - start.steps};
}

TEST(ListCost, OfAHundredThousandRunsIsThatOfThePage) {
  EitherStore either(Kind::kSqlite);
  Fill(static_cast<SqliteStore&>(either.store()));
  auto& reader = static_cast<SqliteReader&>(either.reader());
  const std::vector<RunFilter> filters = {
      {},
      {.owner = "owner-1"},
      {.project = "owner-1-project"},
      {.words = {RunWord::kFailed}},
      {.words = {RunWord::kQueued, RunWord::kRunning}},
      {.changed_after = At(500'000)},
      {.owner = "owner-0", .changed_after = At(500'000)},
      {.labels = {{"rare", "yes"}}},
  };
  for (size_t i = 0; i < filters.size(); ++i) {
    for (const std::optional<int64_t> before : {std::optional<int64_t>(), std::optional<int64_t>(kRuns / 2)}) {
      const QueryCost start = reader.cost();
      const auto page = reader.ListRuns(filters[i], before, kPageRuns);
      ASSERT_TRUE(page.ok() && !page->runs.empty()) << page.status();
      const QueryCost cost = Since(reader.cost(), start);
      // BEGIN, runs, labels, steps, attempts, ROLLBACK.
      EXPECT_EQ(cost.statements, 6) << "filter " << i;
      EXPECT_LE(cost.steps, kPageSteps) << "filter " << i;
    }
  }

  // Starting costs what is unfinished.
  either.Reopen();
  auto& store = static_cast<SqliteStore&>(either.store());
  const QueryCost start = store.database().cost();
  ASSERT_EQ(store.Load()->runs.size(), 20u);
  // As above and the outbox, corrections, quota rules, storage, holds, marks and strikes of nodes, months, hours.
  EXPECT_LE(Since(store.database().cost(), start).statements, 15);
  EXPECT_LE(Since(store.database().cost(), start).steps, kPageSteps);
}

}  // namespace
}  // namespace tp::store
