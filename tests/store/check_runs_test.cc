// What fsck finds in runs that somebody changed with the file in their hands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "author.h"
#include "base/status.h"
#include "either_store.h"

namespace tp::store {
namespace {

using core::JobState;
using testing::HasSubstr;

core::PastAttempt Past(int32_t number, int64_t metered_ms, int64_t cards) {
  core::PastAttempt past;
  past.number = number;
  past.created_at = At(0);
  past.ended_at = At(100);
  past.metered_ms = metered_ms;
  past.cards = cards;
  return past;
}

// Two attempts of a step that is over, both billed, the second corrected since; and a queued step.
void WriteRuns(Author& author) {
  const core::Run run = author.NewRun("ana", 2);
  core::Step step = Author::QueuedStep({run.n, 0});
  step.attempts = 2;
  step.retry_count = 1;
  step.past = {Past(1, 5000, 8), Past(2, 7000, 8)};
  author.Enter(step, JobState::kSucceeded, At(9));
  core::LedgerRow row = author.Bill(run.n, "ana", At(0), At(5), 8);
  row.attempt = 2;
  row.end_unix_ms += 2000;
  row.flagged = true;
  row = author.Bill(row);
  row.delta = true;
  row.start_unix_ms = row.end_unix_ms;
  row.end_unix_ms -= 100;
  author.Bill(row);
}

class CheckRunsTest : public EitherStoreTest {
 protected:
  Author author_;
};
TP_BOTH_STORES(CheckRunsTest);

TEST_P(CheckRunsTest, SoundRunsAreCounted) {
  EXPECT_EQ(*CheckRuns(reader()), 0);
  WriteRuns(author_);
  author_.NewRun("ben");
  Txn txn = author_.Take();
  txn.runs.back().removed_at = At(1);
  Commit(txn);
  const auto checked = CheckRuns(reader());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(*checked, 2);
}

TEST_P(CheckRunsTest, EveryPageIsLookedAt) {
  for (int i = 0; i < 501; ++i) author_.NewRun("ana");
  Txn txn = author_.Take();
  txn.steps.front().state = JobState::kPaused;  // without a holder
  Commit(txn);
  EXPECT_EQ(Message(CheckRuns(reader()).status()), "step 1 of train-1: PAUSED has a holder");
}

TEST_P(CheckRunsTest, AnAttemptThatWasNotBilledIsFound) {
  WriteRuns(author_);
  Txn txn = author_.Take();
  txn.steps.back().past.push_back(Past(3, 1000, 2));
  txn.steps.back().attempts = 3;
  Commit(txn);
  EXPECT_EQ(Message(CheckRuns(reader()).status()),
            "step 1 of train-1: attempt 3 is kept with 1000 ms on 2 cards, its ledger rows come to 0 gpu_ms");
}

TEST_P(CheckRunsTest, ABillForNoAttemptIsFound) {
  author_.NewRun("ana");
  author_.Bill(1, "ana", At(0), At(5), 8);
  Commit(author_.Take());
  EXPECT_EQ(Message(CheckRuns(reader()).status()),
            "step 1 of train-1: the ledger bills attempt 1, which has not ended");
}

TEST_P(CheckRunsTest, AttemptsThatTheStepForgotAreNotMissed) {
  WriteRuns(author_);
  Txn txn = author_.Take();
  txn.steps.back().past.erase(txn.steps.back().past.begin());
  Commit(txn);
  EXPECT_TRUE(CheckRuns(reader()).ok()) << CheckRuns(reader()).status();
}

// Bills that were read before an attempt ended.
class EndsMeanwhile : public MemoryStore {
 public:
  absl::StatusOr<RunPage> ListRuns(const RunFilter& filter, std::optional<int64_t> before, int limit) override {
    if (const auto txn = std::exchange(pending, std::nullopt)) TP_RETURN_IF_ERROR(Commit(*txn));
    return MemoryStore::ListRuns(filter, before, limit);
  }
  std::optional<Txn> pending;
};

TEST(CheckRuns, ACommitMeanwhileIsNoFault) {
  EndsMeanwhile store;
  Author author;
  WriteRuns(author);
  store.pending = author.Take();
  EXPECT_EQ(*CheckRuns(store), 1);
}

TEST(CheckSqliteRuns, FindsWhatWasChanged) {
  const TempDir directory;
  const std::string path = directory.At("tpd.db");
  Author author;
  {
    auto store = SqliteStore::Open(path, nullptr);
    ASSERT_TRUE(store.ok()) << store.status();
    WriteRuns(author);
    ASSERT_TRUE((*store)->Commit(author.Take()).ok());
  }
  auto file = Database::Open(path, Access::kReadWrite);
  ASSERT_TRUE(file.ok()) << file.status();
  auto reader = SqliteReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto fault_after = [&](const std::string& change, const std::string& back) {
    EXPECT_TRUE(file->Execute(change).ok());
    const absl::Status fault = CheckRuns(**reader).status();
    EXPECT_EQ(fault.code(), absl::StatusCode::kDataLoss) << change;
    EXPECT_TRUE(file->Execute(back).ok());
    EXPECT_TRUE(CheckRuns(**reader).ok()) << "after " << back;
    return std::string(Message(fault));
  };
  EXPECT_EQ(fault_after("UPDATE run SET word = 'FAILED'", "UPDATE run SET word = 'QUEUED'"),
            "run train-1 is kept as FAILED, its steps come to QUEUED");
  EXPECT_EQ(fault_after("UPDATE run SET retry_count = 4", "UPDATE run SET retry_count = 1"),
            "run train-1 is kept with 4 retries, its steps have 1");
  EXPECT_EQ(
      fault_after("UPDATE step SET retry_count = 2 WHERE step = 1", "UPDATE step SET retry_count = 0 WHERE step = 1"),
      "run train-1 is kept with 1 retries, its steps have 3");
  EXPECT_EQ(fault_after("UPDATE step SET past = replace(past, '7000', '7001')",
                        "UPDATE step SET past = replace(past, '7001', '7000')"),
            "step 1 of train-1: attempt 2 is kept with 7001 ms on 8 cards, its ledger rows come to 56000 gpu_ms");
  EXPECT_THAT(fault_after("UPDATE step SET past = replace(past, ':7000', ':9223372036854775807')",
                          "UPDATE step SET past = replace(past, ':9223372036854775807', ':7000')"),
              HasSubstr("9223372036854775807 ms"));
  EXPECT_THAT(fault_after("UPDATE step SET past = replace(past, 'value', 'values')",
                          "UPDATE step SET past = replace(past, 'values', 'value')"),
              HasSubstr("past of the row with run '1' and step '0' is damaged: stored JSON is damaged"));
}

}  // namespace
}  // namespace tp::store
