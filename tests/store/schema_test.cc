// Migrations: forward only, with a backup; and files of every format that was ever released.
#include "store/schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "author.h"
#include "base/strings.h"
#include "history.h"
#include "store/memory_store.h"
#include "store/sqlite_reader.h"
#include "store/sqlite_store.h"
#include "temp_dir.h"

namespace tp::store {
namespace {

using testing::HasSubstr;

const std::vector<Migration> kFirst = {{1, "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7);"}};
const std::vector<Migration> kSecond = {kFirst[0], {2, "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 8;"}};

class SchemaTest : public testing::Test {
 protected:
  Database Open() {
    auto database = Database::Open(path_, Access::kReadWrite);
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  absl::Status Migrated(const std::vector<Migration>& migrations) {
    Database database = Open();
    return Migrate(database, migrations);
  }

  int64_t Number(const std::string& path, const std::string& sql) {
    auto database = Database::Open(path, Access::kReadOnly);
    EXPECT_TRUE(database.ok()) << database.status();
    auto number = database->Number(sql);
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(-1);
  }

  TempDir directory_;
  const std::string path_ = directory_.At("tpd.db");
};

TEST_F(SchemaTest, ProductMigrationsCountFromOne) {
  int expected = 1;
  for (const Migration& migration : ProductMigrations()) EXPECT_EQ(migration.version, expected++);
}

TEST_F(SchemaTest, ANewFileGetsEveryMigrationAndNoBackup) {
  ASSERT_TRUE(Migrated(kSecond).ok());
  EXPECT_EQ(Number(path_, "PRAGMA user_version"), 2);
  EXPECT_EQ(Number(path_, "SELECT x + y FROM a"), 15);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".v0.backup"));
}

TEST_F(SchemaTest, AnOlderFileIsBackedUpThenMigrated) {
  ASSERT_TRUE(Migrated(kFirst).ok());
  ASSERT_TRUE(Open().Execute("INSERT INTO a VALUES (9)").ok());
  ASSERT_TRUE(Migrated(kSecond).ok());
  EXPECT_EQ(Number(path_, "SELECT sum(y) FROM a"), 16);
  EXPECT_EQ(Number(path_ + ".v1.backup", "PRAGMA user_version"), 1);
  EXPECT_EQ(Number(path_ + ".v1.backup", "SELECT sum(x) FROM a"), 16);
}

TEST_F(SchemaTest, AMigrationThatFailsLeavesTheFileAsItWas) {
  ASSERT_TRUE(Migrated(kFirst).ok());
  const std::vector<Migration> broken = {kFirst[0], {2, "CREATE TABLE b (x) ; INSERT INTO missing VALUES (1);"}};
  EXPECT_FALSE(Migrated(broken).ok());
  EXPECT_EQ(Number(path_, "PRAGMA user_version"), 1);
  EXPECT_EQ(Number(path_, "SELECT count(*) FROM sqlite_schema"), 1);
  EXPECT_TRUE(Migrated(kSecond).ok());
}

TEST_F(SchemaTest, AMigrationThatBreaksAReferenceIsUndone) {
  const std::vector<Migration> first = {{1,
                                         "CREATE TABLE a (x INTEGER PRIMARY KEY) STRICT; INSERT INTO a VALUES (1);"
                                         "CREATE TABLE b (x INTEGER REFERENCES a (x)) STRICT;"
                                         "INSERT INTO b VALUES (1);"}};
  ASSERT_TRUE(Migrated(first).ok());
  const absl::Status status = Migrated({first[0], {2, "DELETE FROM a;"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Number(path_, "SELECT count(*) FROM a"), 1);
}

TEST_F(SchemaTest, ANewerFileIsRefusedUntouched) {
  ASSERT_TRUE(Migrated(kSecond).ok());
  const absl::Status status = Migrated(kFirst);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("written by a newer tpd (format 2, this one knows up to 1)"));
  EXPECT_EQ(Number(path_, "PRAGMA user_version"), 2);
}

TEST_F(SchemaTest, AnotherProgramsFileIsRefusedUntouched) {
  ASSERT_TRUE(Open().Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status status = Migrated(kFirst);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("another program"));
  EXPECT_EQ(Number(path_, "SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(SchemaTest, OpeningAgainChangesNothing) {
  ASSERT_TRUE(SqliteStore::Open(path_, nullptr).ok());
  const int64_t version = Number(path_, "PRAGMA schema_version");
  ASSERT_TRUE(SqliteStore::Open(path_, nullptr).ok());
  EXPECT_EQ(Number(path_, "PRAGMA schema_version"), version);
}

// --- Released formats -----------------------------------------------------------------------------

// fixtures/NNNN.sql is the dump of a file of format NNNN that holds WriteHistory(); see its README.md.
class FixtureTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Formats, FixtureTest, testing::Range(1, ProductMigrations().back().version + 1));

TEST_P(FixtureTest, OpensInThisVersionWithEverythingInIt) {
  const TempDir directory;
  const std::string path = directory.At("tpd.db");
  std::ifstream dump(fmt::format("{}/{:04}.sql", TP_STORE_FIXTURES, GetParam()));
  ASSERT_TRUE(dump.good());
  const std::string sql((std::istreambuf_iterator<char>(dump)), {});
  {
    auto database = Database::Open(path, Access::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status status = database->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  auto store = SqliteStore::Open(path, nullptr);
  ASSERT_TRUE(store.ok()) << store.status();
  auto reader = SqliteReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();

  MemoryStore expected;
  WriteHistory(expected, GetParam());
  EXPECT_EQ(*(*store)->Load(), *expected.Load());
  EXPECT_EQ(ReadEverything(**reader), ReadEverything(expected));
  EXPECT_TRUE(CheckLedger(**reader).ok());
  const auto changes = GetParam() < 7 ? std::vector<WordChange>() : *expected.WordChangesAfter(0, 100);
  EXPECT_EQ(*(*reader)->WordChangesAfter(0, 100), changes);
}

}  // namespace
}  // namespace tp::store
