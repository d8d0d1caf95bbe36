// gpu_seconds by every key, and the check that finds any change of the ledger.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "author.h"
#include "either_store.h"
#include "random_values.h"
#include "store/usage.h"

namespace tp::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kDay = 24 * 3600;

class UsageTest : public EitherStoreTest {
 protected:
  std::vector<UsageRow> Usage(UsageKey by, const UsageFilter& filter = {}) {
    const auto rows = reader().Usage(filter, by);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<UsageRow>{};
  }

  Author author_;
};
TP_BOTH_STORES(UsageTest);

TEST_P(UsageTest, NothingIsNothing) {
  EXPECT_THAT(Usage(UsageKey::kUser), IsEmpty());
  EXPECT_TRUE(CheckLedger(reader()).ok());
}

TEST_P(UsageTest, ByEveryKey) {
  author_.Bill(2, "ana", At(0), At(10), 8);
  author_.Bill(10, "ben", At(0), At(5), 1);
  author_.Bill(10, "ana", At(40 * kDay), At(40 * kDay + 1), 2);
  Commit(author_.Take());
  EXPECT_THAT(Usage(UsageKey::kUser), ElementsAre(UsageRow{"ana", 82'000, 2}, UsageRow{"ben", 5000, 1}));
  EXPECT_THAT(Usage(UsageKey::kProject),
              ElementsAre(UsageRow{"ana-project", 82'000, 2}, UsageRow{"ben-project", 5000, 1}));
  EXPECT_THAT(Usage(UsageKey::kSeries), ElementsAre(UsageRow{"h200", 87'000, 2}));
  EXPECT_THAT(Usage(UsageKey::kProfile), ElementsAre(UsageRow{"h200-big", 87'000, 2}));
  EXPECT_THAT(Usage(UsageKey::kMonth), ElementsAre(UsageRow{"2026-01", 85'000, 2}, UsageRow{"2026-02", 2000, 1}));
  EXPECT_THAT(Usage(UsageKey::kDay), ElementsAre(UsageRow{"2026-01-01", 85'000, 2}, UsageRow{"2026-02-10", 2000, 1}));
  EXPECT_THAT(Usage(UsageKey::kRun), ElementsAre(UsageRow{"2", 80'000, 1}, UsageRow{"10", 7000, 1}));
}

TEST_P(UsageTest, Filters) {
  author_.Bill(1, "ana", At(0), At(10), 8);
  author_.Bill(2, "ben", At(0), At(5), 1);
  Commit(author_.Take());
  EXPECT_THAT(Usage(UsageKey::kUser, {.owner = "ben"}), ElementsAre(UsageRow{"ben", 5000, 1}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.project = "ana-project"}), ElementsAre(UsageRow{"ana", 80'000, 1}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.run = 2}), ElementsAre(UsageRow{"ben", 5000, 1}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.owner = "ana", .run = 2}), IsEmpty());
}

TEST_P(UsageTest, AnIntervalOverDaysIsSplitAtUtcMidnight) {
  author_.Bill(1, "ana", At(kDay - 1), At(2 * kDay + 2), 4);
  Commit(author_.Take());
  EXPECT_THAT(Usage(UsageKey::kDay),
              ElementsAre(UsageRow{"2026-01-01", 4000, 1}, UsageRow{"2026-01-02", 4 * kDay * 1000, 1},
                          UsageRow{"2026-01-03", 8000, 1}));
}

TEST_P(UsageTest, ARangeCutsIntervals) {
  author_.Bill(1, "ana", At(0), At(10), 2);
  author_.Bill(2, "ana", At(20), At(30), 2);
  Commit(author_.Take());
  EXPECT_THAT(Usage(UsageKey::kUser, {.from = At(4)}), ElementsAre(UsageRow{"ana", 32'000, 2}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.to = At(4)}), ElementsAre(UsageRow{"ana", 8000, 1}));
  EXPECT_THAT(Usage(UsageKey::kDay, {.from = At(9), .to = At(21)}), ElementsAre(UsageRow{"2026-01-01", 4000, 2}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.from = At(10), .to = At(20)}), IsEmpty());
}

TEST_P(UsageTest, ADeltaTakesBack) {
  core::LedgerRow flagged;
  flagged.run = 1;
  flagged.owner = "ana";
  flagged.month = "2026-01";
  flagged.cards = 8;
  flagged.start_unix_ms = absl::ToUnixMillis(At(0));
  flagged.end_unix_ms = absl::ToUnixMillis(At(100));
  flagged.flagged = true;
  author_.Bill(flagged);
  core::LedgerRow delta = flagged;
  delta.delta = true;
  delta.flagged = false;
  delta.start_unix_ms = flagged.end_unix_ms;
  delta.end_unix_ms = absl::ToUnixMillis(At(90));
  author_.Bill(delta);
  Commit(author_.Take());
  EXPECT_THAT(Usage(UsageKey::kUser), ElementsAre(UsageRow{"ana", 720'000, 1}));
  EXPECT_THAT(Usage(UsageKey::kDay), ElementsAre(UsageRow{"2026-01-01", 720'000, 1}));
  EXPECT_THAT(Usage(UsageKey::kUser, {.from = At(95)}), ElementsAre(UsageRow{"ana", 0, 1}));
  EXPECT_TRUE(CheckLedger(reader()).ok());
}

TEST_P(UsageTest, LedgerRowsComeByPagesAndFilters) {
  std::vector<core::LedgerRow> rows;
  for (int64_t i = 0; i < 7; ++i)
    rows.push_back(author_.Bill(i, i % 2 == 0 ? "ana" : "ben", At(i * 10), At(i * 10 + 5), 1));
  Commit(author_.Take());
  EXPECT_THAT(*reader().Ledger({}, 0, 100), testing::ElementsAreArray(rows));
  EXPECT_THAT(*reader().Ledger({}, 2, 2), ElementsAre(rows[2], rows[3]));
  EXPECT_THAT(*reader().Ledger({.owner = "ben"}, 2, 100), ElementsAre(rows[3], rows[5]));
  EXPECT_THAT(*reader().Ledger({.from = At(41), .to = At(51)}, 0, 100), ElementsAre(rows[4], rows[5]));
}

// The parts of any partition of time sum to the whole, by every key.
TEST_P(UsageTest, PartsOfTimeSumToTheWhole) {
  RandomValues random(9);
  for (int64_t i = 0; i < 60; ++i) {
    const auto start = static_cast<int64_t>(random.Below(10 * kDay));
    const auto length = static_cast<int64_t>(random.Below(3 * kDay));
    author_.Bill(i, "owner-" + std::to_string(i % 5), At(start), At(start + length),
                 static_cast<int64_t>(random.Below(9)));
  }
  Commit(author_.Take());
  for (const UsageKey by : {UsageKey::kUser, UsageKey::kSeries, UsageKey::kDay, UsageKey::kRun}) {
    std::map<std::string, int64_t> whole;
    for (const UsageRow& row : Usage(by)) whole[row.key] = row.gpu_ms;
    const absl::Time cuts[] = {At(0), At(1234), At(kDay), At(5 * kDay + 777), At(100 * kDay)};
    std::map<std::string, int64_t> parts;
    for (size_t i = 1; i < std::size(cuts); ++i) {
      for (const UsageRow& row : Usage(by, {.from = cuts[i - 1], .to = cuts[i]})) parts[row.key] += row.gpu_ms;
    }
    EXPECT_EQ(parts, whole);
  }
}

// --- Check ----------------------------------------------------------------------------------------

// A few rows of each kind.
std::vector<core::LedgerRow> BillSome(Author& author) {
  std::vector<core::LedgerRow> rows;
  for (int64_t i = 0; i < 5; ++i) rows.push_back(author.Bill(i, i % 2 == 0 ? "ana" : "ben", At(i), At(i + 3), i));
  core::LedgerRow delta = rows.back();
  delta.delta = true;
  std::swap(delta.start_unix_ms, delta.end_unix_ms);
  rows.push_back(author.Bill(delta));
  return rows;
}

class TamperedReader : public MemoryStore {
 public:
  std::function<void(std::vector<core::LedgerRow>&)> tamper;

  absl::StatusOr<std::vector<core::LedgerRow>> Ledger(const UsageFilter& filter, int64_t after_seq,
                                                      int limit) override {
    std::vector<core::LedgerRow> rows = *MemoryStore::Ledger(filter, 0, 1000);
    tamper(rows);
    std::erase_if(rows, [&](const core::LedgerRow& row) { return row.seq <= after_seq; });
    if (rows.size() > static_cast<size_t>(limit)) rows.resize(static_cast<size_t>(limit));
    return rows;
  }
};

class CheckLedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    Author author;
    rows_ = BillSome(author).size();
    ASSERT_TRUE(reader_.Commit(author.Take()).ok());
  }

  absl::Status CheckAfter(std::function<void(std::vector<core::LedgerRow>&)> tamper) {
    reader_.tamper = std::move(tamper);
    return CheckLedger(reader_);
  }

  TamperedReader reader_;
  size_t rows_ = 0;
};

TEST_F(CheckLedgerTest, PassesWhatWasCommitted) {
  EXPECT_TRUE(CheckAfter([](auto&) {}).ok());
}

TEST_F(CheckLedgerTest, FindsAMissingRow) {
  for (size_t i = 0; i < rows_; ++i) {
    const absl::Status status = CheckAfter([&](auto& rows) { rows.erase(rows.begin() + static_cast<long>(i)); });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "row " << i;
  }
}

TEST_F(CheckLedgerTest, FindsARowTooMany) {
  const absl::Status status = CheckAfter([](auto& rows) {
    Meta meta;
    meta.ledger_seq = rows.back().seq;
    meta.ledger_hash = rows.back().hash;
    rows.push_back(rows.back());
    ChainRow(rows.back(), meta);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(CheckLedgerTest, FindsAChainThatWasForgedFromTheMiddle) {
  const absl::Status status = CheckAfter([](auto& rows) {
    rows[2].cards = 100;
    rows[2].gpu_ms = 300'000;
    Meta meta;
    for (core::LedgerRow& row : rows) ChainRow(row, meta);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("last row"));
}

TEST_F(CheckLedgerTest, FindsAWrongProduct) {
  Author author;
  core::LedgerRow row;
  row.cards = 2;
  row.end_unix_ms = 10;
  row.gpu_ms = 21;
  Meta meta;
  ChainRow(row, meta);
  Txn txn = author.Take();
  txn.ledger = {row};
  txn.meta = meta;
  MemoryStore store;
  ASSERT_TRUE(store.Commit(txn).ok());
  EXPECT_THAT(std::string(CheckLedger(store).message()), HasSubstr("row 1 says 21 gpu_ms"));
}

// --- Corrections ----------------------------------------------------------------------------------

// A flagged end over two pools, and its correction.
class CheckCorrectionsTest : public testing::Test {
 protected:
  void SetUp() override {
    core::LedgerRow row;
    row.run = 3;
    row.attempt = 2;
    row.owner = "ana";
    row.month = "2026-01";
    row.cards = 8;
    row.flagged = true;
    row.end_unix_ms = 1000;
    for (row.pool = 0; row.pool < 2; ++row.pool) rows_.push_back(row);
    row.delta = true;
    row.flagged = false;
    row.start_unix_ms = 1000;
    row.end_unix_ms = 400;
    for (row.pool = 0; row.pool < 2; ++row.pool) rows_.push_back(row);
  }

  // What it says of rows that a file could hold whose constraints were taken away.
  std::string Fault() {
    TamperedReader reader;
    for (core::LedgerRow& row : rows_) row.gpu_ms = (row.end_unix_ms - row.start_unix_ms) * row.cards;
    reader.tamper = [this](std::vector<core::LedgerRow>& rows) {
      rows = rows_;
      for (size_t i = 0; i < rows.size(); ++i) rows[i].seq = static_cast<int64_t>(i) + 1;
    };
    return std::string(CheckCorrections(reader).message());
  }

  std::vector<core::LedgerRow> rows_;
};

TEST_F(CheckCorrectionsTest, PassesOneOfEachPool) { EXPECT_EQ(Fault(), ""); }

TEST_F(CheckCorrectionsTest, PassesOneThatReachesIntoAnotherMonth) {
  rows_[3].end_unix_ms = 5000;
  rows_.push_back(rows_[3]);
  rows_[4].month = "2026-02";
  rows_[4].start_unix_ms = 5000;
  rows_[4].end_unix_ms = 7000;
  EXPECT_EQ(Fault(), "");
}

TEST_F(CheckCorrectionsTest, FindsASecondOne) {
  rows_.push_back(rows_[3]);
  rows_[4].start_unix_ms = 400;
  EXPECT_EQ(Fault(), "ledger: attempt 2 of step 1 of run 3, pool 1, is corrected a second time in 2026-01 by row 5");
}

TEST_F(CheckCorrectionsTest, FindsOneOfAnEndThatWasNotFlagged) {
  rows_[1].flagged = false;
  EXPECT_EQ(Fault(),
            "ledger: attempt 2 of step 1 of run 3, pool 1, is corrected by row 4, but no row of it is flagged");
  rows_.erase(rows_.begin() + 1);
  EXPECT_THAT(Fault(), HasSubstr("no row of it is flagged"));
}

TEST_F(CheckCorrectionsTest, FindsOneThatIsAboutSomethingElse) {
  rows_[2].cards = 7;
  EXPECT_THAT(Fault(), HasSubstr("pool 0, is corrected by row 3, which does not go on from where it was closed"));
  rows_[2].cards = 8;
  rows_[2].start_unix_ms = 999;
  EXPECT_THAT(Fault(), HasSubstr("which does not go on from where it was closed"));
}

TEST_F(CheckCorrectionsTest, FindsOneThatTakesBackMoreThanThereWas) {
  rows_[2].end_unix_ms = -1;
  EXPECT_EQ(Fault(), "ledger: attempt 2 of step 1 of run 3, pool 0, is corrected to -8 gpu_ms in 2026-01");
}

class WrongSums : public MemoryStore {
 public:
  absl::StatusOr<std::vector<UsageRow>> Usage(const UsageFilter& filter, UsageKey by) override {
    std::vector<UsageRow> rows = *MemoryStore::Usage(filter, by);
    rows.back().gpu_ms += 1;
    return rows;
  }
};

TEST_F(CheckLedgerTest, FindsWrongAggregates) {
  WrongSums store;
  Author author;
  BillSome(author);
  ASSERT_TRUE(store.Commit(author.Take()).ok());
  EXPECT_THAT(std::string(CheckLedger(store).message()), HasSubstr("usage of ben"));
}

class WrongMonths : public MemoryStore {
 public:
  absl::StatusOr<std::vector<MonthUseRow>> MonthUse() override {
    std::vector<MonthUseRow> rows = *MemoryStore::MonthUse();
    rows.back().gpu_ms += 1;
    return rows;
  }
};

TEST_F(CheckLedgerTest, FindsWrongMonths) {
  WrongMonths store;
  Author author;
  BillSome(author);
  author.Bill(7, "ben", At(40 * kDay), At(40 * kDay + 1), 2);
  ASSERT_TRUE(store.Commit(author.Take()).ok());
  EXPECT_EQ(CheckLedger(store).message(),
            "use of ben in 2026-02 is reported as 2001 gpu_ms, the ledger rows sum to 2000");
}

// Every column of every row of the real table, changed by somebody with the file in their hands.
TEST(CheckSqliteLedger, FindsEveryChangeOfEveryColumn) {
  TempDir directory;
  const std::string path = directory.At("tpd.db");
  Author author;
  size_t rows = 0;
  {
    auto store = SqliteStore::Open(path, nullptr);
    ASSERT_TRUE(store.ok()) << store.status();
    rows = BillSome(author).size();
    ASSERT_TRUE((*store)->Commit(author.Take()).ok());
  }
  auto file = Database::Open(path, Access::kReadWrite);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Execute("DROP TRIGGER ledger_is_never_changed; DROP TRIGGER ledger_is_never_deleted;"
                            "DROP INDEX ledger_billed; PRAGMA ignore_check_constraints = ON;"
                            "CREATE TEMP TABLE kept AS SELECT * FROM ledger")
                  .ok());
  auto reader = SqliteReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();

  std::vector<std::pair<std::string, std::string>> columns;
  {
    Query query(*file, "SELECT name, type FROM pragma_table_info('ledger')");
    while (*query.Next()) {
      Columns column(query);
      std::string name = column.Text();
      columns.emplace_back(std::move(name), column.Text());
    }
  }
  ASSERT_EQ(columns.size(), 19u);
  int changes = 0;
  for (size_t seq = 1; seq <= rows; ++seq) {
    for (const auto& [column, type] : columns) {
      const std::string changed = column == "flagged" || column == "delta" ? "1 - " + column
                                  : type == "INTEGER"                      ? column + " + 1000"
                                                                           : column + " || 'x'";
      const absl::Status status =
          file->Execute(fmt::format("UPDATE ledger SET {} = {} WHERE seq = {}", column, changed, seq));
      ASSERT_TRUE(status.ok()) << status;
      const absl::Status fault = CheckLedger(**reader);
      EXPECT_EQ(fault.code(), absl::StatusCode::kDataLoss) << column << " of row " << seq;
      EXPECT_THAT(std::string(fault.message()), HasSubstr(fmt::format("row {}", seq))) << column;
      ++changes;
      ASSERT_TRUE(file->Execute("DELETE FROM ledger; INSERT INTO ledger SELECT * FROM kept").ok());
      ASSERT_TRUE(CheckLedger(**reader).ok()) << "after " << column << " was put back";
    }
  }
  EXPECT_EQ(changes, 6 * 19);
}

}  // namespace
}  // namespace tp::store
