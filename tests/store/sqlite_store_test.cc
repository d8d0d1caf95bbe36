// What is SQLite's alone: durability settings, constraints, full disks, damage, readers beside the writer.
#include "store/sqlite_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "author.h"
#include "base/strings.h"
#include "either_store.h"
#include "random_values.h"
#include "store/sqlite_rows.h"
#include "temp_dir.h"

namespace tp::store {
namespace {

using core::JobState;
using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  void SetUp() override { store_ = OpenStore(); }

  std::unique_ptr<SqliteStore> OpenStore() {
    auto store = SqliteStore::Open(path_, nullptr);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  std::unique_ptr<SqliteReader> OpenReader() {
    auto reader = SqliteReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }

  absl::Status Execute(const std::string& sql) { return store_->database().Execute(sql); }

  void CommitRun(int steps = 1) {
    author_.NewRun("ana", steps);
    const absl::Status status = store_->Commit(author_.Take());
    ASSERT_TRUE(status.ok()) << status;
  }

  TempDir directory_;
  const std::string path_ = directory_.At("tpd.db");
  std::unique_ptr<SqliteStore> store_;
  Author author_;
};

TEST_F(SqliteStoreTest, IsSetUpToSurviveAPowerCut) {
  Database& database = store_->database();
  EXPECT_EQ(*database.Number("PRAGMA synchronous"), 2);
  EXPECT_EQ(*database.Number("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(*database.Number("PRAGMA trusted_schema"), 0);
  EXPECT_EQ(*database.Number("PRAGMA cell_size_check"), 1);
  Query mode(database, "PRAGMA journal_mode");
  ASSERT_TRUE(*mode.Next());
  EXPECT_EQ(Columns(mode).Text(), "wal");
}

TEST_F(SqliteStoreTest, IsReadableForItsOwnerOnly) {
  CommitRun();
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat about {};
    ASSERT_EQ(stat((path_ + suffix).c_str(), &about), 0) << suffix;
    EXPECT_EQ(about.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(SqliteStoreTest, EveryTableIsStrict) {
  EXPECT_EQ(*store_->database().Number("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                                       "name NOT LIKE 'sqlite%' AND NOT strict"),
            0);
}

TEST_F(SqliteStoreTest, TheDatabaseItselfRefusesNonsense) {
  CommitRun();
  author_.Bill(1, "ana", At(0), At(1), 1);
  ASSERT_TRUE(store_->Commit(author_.Take()).ok());
  for (const std::string sql : {
           "UPDATE run SET word = 'DONE'",
           "UPDATE step SET state = 'PARTIAL'",
           "UPDATE step SET failure_kind = 'bad_luck'",
           "UPDATE step SET stop_requested = 2",
           "UPDATE step SET run = 99",
           "UPDATE step SET attempts = 'many'",
           "UPDATE meta SET epoch = 0",
           "INSERT INTO meta VALUES (2, 1, 0, 1, 1, 0, '')",
           "UPDATE ledger SET cards = 2",
           "DELETE FROM ledger",
           "INSERT INTO ledger SELECT 2, run, step, attempt, pool, series, profile, owner, project, month, cards, "
           "start_unix_ms, end_unix_ms, gpu_ms, flagged, delta, evidence, previous_hash, hash FROM ledger",
           "INSERT INTO ledger SELECT 2, 9, step, attempt, pool, series, profile, owner, project, month, cards, "
           "start_unix_ms, end_unix_ms, gpu_ms + 1, flagged, delta, evidence, previous_hash, hash FROM ledger",
       }) {
    EXPECT_FALSE(Execute(sql).ok()) << sql;
  }
}

TEST_F(SqliteStoreTest, EveryWordOfEveryEnumerationPassesItsConstraint) {
  CommitRun();
  RandomValues random(5);
  for (int i = 0; i < 400; ++i) {
    core::Step step = random.Make<core::Step>();
    step.ref = {1, 0};
    step.spec.after.reset();
    if (!step.attempt) step.attempt.emplace();
    step.attempt->handover = random.Make<core::Handover>();
    step.attempt->claim = random.Make<Claim>();
    step.attempt->engine_end = random.Make<EngineEnd>();
    author_.Put(step);
    OutboxRow owed = author_.Owe({{1, 0}, 1}, random.Make<OutboxKind>());
    Txn txn = author_.Take();
    txn.outbox_added[0].level = random.Make<StopLevel>();
    txn.outbox_done = {owed.id};
    txn.tokens.push_back({"t", "s", "ana", random.Make<Role>(), At(0)});
    const absl::Status status = store_->Commit(txn);
    ASSERT_TRUE(status.ok()) << status;
  }
}

// --- Damage ---------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, DamagedRowsAreNamedNotGuessed) {
  CommitRun(2);
  const auto reader = OpenReader();
  const auto fault_after = [&](const std::string& sql) {
    EXPECT_TRUE(Execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; SAVEPOINT s").ok());
    EXPECT_TRUE(Execute(sql).ok()) << sql;
    EXPECT_TRUE(Execute("RELEASE s").ok());
    const absl::Status status = reader->GetRun(1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << sql;
    return std::string(Message(status));
  };
  EXPECT_THAT(fault_after("UPDATE step SET state = 'ODD' WHERE step = 1"), HasSubstr("'ODD' is not a known word"));
  EXPECT_THAT(fault_after("UPDATE step SET state = 'QUEUED', spec = '{' WHERE step = 1"), HasSubstr("not JSON"));
  EXPECT_THAT(fault_after("UPDATE step SET spec = (SELECT spec FROM step WHERE step = 0), attempts = 5000000000"),
              HasSubstr("out of range"));
  EXPECT_THAT(fault_after("UPDATE step SET attempts = 0; DELETE FROM step WHERE step = 0"), HasSubstr("no step 0"));
}

TEST(SqliteFile, AFileThatIsNoDatabaseIsRefused) {
  const TempDir directory;
  const std::string path = directory.At("tpd.db");
  FILE* file = fopen(path.c_str(), "w");
  fputs(std::string(5000, 'x').c_str(), file);
  fclose(file);
  const auto store = SqliteStore::Open(path, nullptr);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(store.status())), HasSubstr(path));
}

TEST(SqliteFile, AReaderNeedsTheFile) {
  const TempDir directory;
  EXPECT_FALSE(SqliteReader::Open(directory.At("tpd.db")).ok());
  EXPECT_FALSE(std::filesystem::exists(directory.At("tpd.db")));
}

// --- Full disks -----------------------------------------------------------------------------------

// A transaction that needs more pages than are left.
Txn Large(Author& author) {
  for (int i = 0; i < 200; ++i) author.NewRun("ana");
  return author.Take();
}

TEST_F(SqliteStoreTest, OnAFullDiskNothingIsWrittenAndLaterCommitsGoOn) {
  CommitRun();
  const Loaded before = *store_->Load();
  ASSERT_TRUE(store_->database().Number("PRAGMA max_page_count = 1").ok());
  Author tried = author_;
  const absl::Status status = store_->Commit(Large(tried));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("free some space"));
  EXPECT_EQ(*store_->Load(), before);
  EXPECT_EQ(*OpenReader()->Revision(), before.meta.revision);

  ASSERT_TRUE(store_->database().Number("PRAGMA max_page_count = 100000").ok());
  EXPECT_TRUE(store_->Commit(Large(author_)).ok());
  store_ = OpenStore();
  EXPECT_EQ(store_->Load()->runs.size(), 201u);
}

// How long the log of one large transaction is.
rlim_t LogBytesOfLarge() {
  const TempDir directory;
  const std::string path = directory.At("tpd.db");
  const auto store = SqliteStore::Open(path, nullptr);
  const auto before = std::filesystem::file_size(path + "-wal");
  Author author;
  EXPECT_TRUE((*store)->Commit(Large(author)).ok());
  return std::filesystem::file_size(path + "-wal") - before;
}

int CommitUnderLimits(SqliteStore& store, const Author& author, const std::string& log) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto start = static_cast<rlim_t>(std::filesystem::file_size(log));
  const rlim_t needed = LogBytesOfLarge();
  for (const rlim_t room : {rlim_t{0}, rlim_t{1000}, needed / 2, needed - 5000}) {
    const rlimit bounded{start + room, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &bounded) != 0) return 1;
    Author tried = author;
    if (store.Commit(Large(tried)).code() != absl::StatusCode::kResourceExhausted) return 2;
    if (store.Load()->runs.size() != 1) return 3;
  }
  const rlimit unbounded{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &unbounded) != 0) return 4;
  Author again = author;
  return store.Commit(Large(again)).ok() ? 0 : 5;
}

// The same through the operating system, in a process of its own: writes beyond a limit fail in the
// middle of the log.
TEST_F(SqliteStoreTest, AFileThatMayNotGrowIsAFullDisk) {
  CommitRun();
  store_.reset();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = SqliteStore::Open(path_, nullptr);
    Author first = author_;
    first.Grant({"t", "s", "ana", Role::kUser, At(0)});
    // The log's file and its index exist from the first commit on.
    _exit(store.ok() && (*store)->Commit(first.Take()).ok() ? CommitUnderLimits(**store, author_, path_ + "-wal") : 9);
  }
  int result = 0;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  ASSERT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
  store_ = OpenStore();
  EXPECT_EQ(store_->Load()->runs.size(), 201u);
}

// --- The log --------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, TheLogIsFoldedBackAsItGrows) {
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(store_->Commit(Large(author_)).ok());
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), 5u << 20);
  EXPECT_GT(std::filesystem::file_size(path_), 2u << 20);
}

TEST_F(SqliteStoreTest, AReaderThatStaysHoldsUpNoCommit) {
  CommitRun();
  auto other = Database::Open(path_, Access::kReadOnly);
  ASSERT_TRUE(other.ok());
  {
    auto transaction = Transaction::Begin(*other, Transaction::Kind::kRead);
    ASSERT_TRUE(transaction.ok());
    ASSERT_EQ(*other->Number("SELECT count(*) FROM run"), 1);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(store_->Commit(Large(author_)).ok());
    EXPECT_EQ(*other->Number("SELECT count(*) FROM run"), 1);
  }
  EXPECT_EQ(*other->Number("SELECT count(*) FROM run"), 1 + 40 * 200);
}

// --- Readers --------------------------------------------------------------------------------------

// Each commit moves all steps of a run together; no reader ever sees them apart.
TEST_F(SqliteStoreTest, ReadersSeeWholeCommitsOnly) {
  constexpr int kSteps = 4;
  CommitRun(kSteps);
  const auto reader = OpenReader();
  std::atomic<bool> over{false};
  std::atomic<int64_t> reads{0};
  std::atomic<int> faults{0};
  const auto read = [&] {
    int64_t last_revision = 0;
    while (!over) {
      const auto run = reader->GetRun(1);
      const auto revision = reader->Revision();
      if (!run.ok() || !revision.ok() || *revision < last_revision) {
        ++faults;
        continue;
      }
      last_revision = *revision;
      for (const core::Step& step : run->steps) {
        if (step.retry_count != run->steps[0].retry_count) ++faults;
      }
      ++reads;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(read);
  for (int32_t commit = 1; commit <= 200 || reads < 100; ++commit) {
    for (int32_t i = 0; i < kSteps; ++i) {
      core::Step step = Author::QueuedStep({1, i});
      step.retry_count = commit;
      author_.Enter(step, JobState::kQueued, At(commit));
    }
    ASSERT_TRUE(store_->Commit(author_.Take()).ok());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
}

TEST_F(SqliteStoreTest, AReaderCannotWrite) {
  auto database = Database::Open(path_, Access::kReadOnly);
  ASSERT_TRUE(database.ok());
  EXPECT_FALSE(database->Execute("DELETE FROM run").ok());
}

// A commit costs what changed: no statement more when there is a hundred times as much besides.
TEST_F(SqliteStoreTest, ACommitCostsWhatChanged) {
  const auto cost_of_a_change = [&] {
    author_.Enter(Author::QueuedStep({1, 0}), JobState::kRunning, At(1));
    const QueryCost start = store_->database().cost();
    EXPECT_TRUE(store_->Commit(author_.Take()).ok());
    const QueryCost& end = store_->database().cost();
    return QueryCost{end.statements - start.statements, end.steps - start.steps};
  };
  CommitRun();
  cost_of_a_change();
  const QueryCost small = cost_of_a_change();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->Commit(Large(author_)).ok());
  const QueryCost large = cost_of_a_change();
  EXPECT_EQ(large.statements, small.statements);
  EXPECT_LE(large.steps, small.steps + 10);
  // BEGIN, other steps, step, attempt, word, event, meta, COMMIT.
  EXPECT_EQ(small.statements, 8);
}

}  // namespace
}  // namespace tp::store
