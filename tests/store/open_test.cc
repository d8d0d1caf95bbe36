// Opening a deployment's data: one process, restored databases, the migrations.
#include "store/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "author.h"
#include "base/strings.h"
#include "store/backup.h"
#include "store/disk.h"
#include "temp_dir.h"

namespace tp::store {
namespace {

using core::JobState;
using testing::HasSubstr;

class OpenTest : public testing::Test {
 protected:
  OpenedStore Open() {
    auto opened = OpenStore(directory_.path());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : OpenedStore{};
  }

  // Commits one run.
  void Submit(OpenedStore& opened) {
    Author author(opened.store->meta());
    last_run_ = author.NewRun("ana").n;
    author.AddEvent({last_run_, 0}, JobState::kQueued, JobState::kQueued);
    const absl::Status status = opened.store->Commit(author.Take());
    ASSERT_TRUE(status.ok()) << status;
  }

  void Restore(const std::string& backup) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(database_ + suffix);
    if (!backup.empty()) std::filesystem::copy(backup, database_);
  }

  TempDir directory_;
  const std::string database_ = directory_.At("tpd.db");
  int64_t last_run_ = 0;
};

TEST_F(OpenTest, OneProcessADeployment) {
  const OpenedStore opened = Open();
  const auto second = OpenStore(directory_.path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("pid " + std::to_string(getpid())));
}

TEST_F(OpenTest, OneDeploymentADatabase) {
  const OpenedStore opened = Open();
  const TempDir other;
  const auto second = OpenStore(StorePaths{directory_.path(), other.path()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("another deployment"));
}

TEST_F(OpenTest, ARestartFindsEverything) {
  for (int i = 1; i <= 3; ++i) {
    OpenedStore opened = Open();
    EXPECT_FALSE(opened.restored.has_value());
    Submit(opened);
    EXPECT_EQ(last_run_, i);
    EXPECT_EQ(opened.store->Load()->runs.size(), static_cast<size_t>(i));
    EXPECT_EQ(*opened.reader->Revision(), i);
  }
}

// Runs 1 and 2 are in the backup, 3 and 4 are lost with the database; nobody gets their numbers again.
TEST_F(OpenTest, ARestoredDatabaseBeginsANewEpochBehindTheMark) {
  {
    OpenedStore opened = Open();
    Submit(opened);
    Submit(opened);
    ASSERT_TRUE(BackUp(database_, directory_.At("backup")).ok());
    Submit(opened);
    Submit(opened);
  }
  Restore(directory_.At("backup"));
  OpenedStore opened = Open();
  ASSERT_TRUE(opened.restored.has_value());
  EXPECT_EQ(opened.restored->epoch, 2);
  EXPECT_GT(opened.restored->next_run, 4);

  Author unaware(opened.store->meta());
  unaware.NewRun("ana");
  EXPECT_THAT(std::string(Message(opened.store->Commit(unaware.Take()))), HasSubstr("restored"));

  ASSERT_TRUE(opened.store->BeginEpoch(opened.restored->epoch, opened.restored->next_run).ok());
  Submit(opened);
  EXPECT_EQ(last_run_, opened.restored->next_run);
  EXPECT_EQ(opened.store->meta().epoch, 2);
  // Whoever waits for changes after revision 4 of the lost database sees those of the new epoch.
  EXPECT_EQ(opened.reader->EventsAfter(4, 10)->size(), 1u);
  opened = {};
  EXPECT_FALSE(Open().restored.has_value());
}

TEST_F(OpenTest, ALostDatabaseIsARestoredOne) {
  {
    OpenedStore opened = Open();
    Submit(opened);
  }
  Restore("");
  OpenedStore opened = Open();
  ASSERT_TRUE(opened.restored.has_value());
  EXPECT_GT(opened.restored->next_run, 1);
}

TEST_F(OpenTest, ARestoreIsReportedUntilTheEpochHasBegun) {
  {
    OpenedStore opened = Open();
    Submit(opened);
    ASSERT_TRUE(BackUp(database_, directory_.At("backup")).ok());
    Submit(opened);
  }
  Restore(directory_.At("backup"));
  const std::optional<Restored> first = Open().restored;
  const std::optional<Restored> second = Open().restored;
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, second);
}

TEST_F(OpenTest, TheLockFileMayLiveElsewhere) {
  const TempDir storage;
  auto opened = OpenStore(StorePaths{directory_.path(), storage.path()});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(std::filesystem::exists(storage.At("tpd.lock")));
  EXPECT_FALSE(std::filesystem::exists(directory_.At("tpd.lock")));
}

TEST_F(OpenTest, ADatabaseOlderThanItsLockFileIsAdopted) {
  {
    OpenedStore opened = Open();
    Submit(opened);
  }
  std::filesystem::remove(directory_.At("tpd.lock"));
  const OpenedStore opened = Open();
  EXPECT_FALSE(opened.restored.has_value());
  EXPECT_EQ(opened.lock->state().revision, 1);
  EXPECT_GE(opened.lock->state().run_mark, 2);
}

// --- Backups --------------------------------------------------------------------------------------

TEST_F(OpenTest, ABackupHoldsWhatIsStillInTheLog) {
  OpenedStore opened = Open();
  Submit(opened);
  const std::string backup = directory_.At("backup");
  ASSERT_TRUE(BackUp(database_, backup).ok());
  Submit(opened);
  ASSERT_TRUE(BackUp(database_, backup).ok()) << "over the one before";
  EXPECT_FALSE(std::filesystem::exists(backup + ".tmp"));
  EXPECT_FALSE(std::filesystem::exists(backup + "-wal"));
  auto copy = SqliteStore::Open(backup, nullptr);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(*(*copy)->Load(), *opened.store->Load());
}

TEST_F(OpenTest, ABackupThatFailsLeavesTheOneBefore) {
  EXPECT_FALSE(BackUp(directory_.At("missing"), directory_.At("backup")).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.At("backup")));
  EXPECT_FALSE(std::filesystem::exists(directory_.At("missing")));
}

// --- Disk -----------------------------------------------------------------------------------------

TEST(Disk, NetworkFilesystemsAreNamed) {
  EXPECT_EQ(NetworkFilesystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFilesystem(0xFF534D42), "CIFS");
  EXPECT_EQ(NetworkFilesystem(0xEF53), std::nullopt);      // ext4
  EXPECT_EQ(NetworkFilesystem(0x01021994), std::nullopt);  // tmpfs
  EXPECT_EQ(CheckFilesystem("/missing").code(), absl::StatusCode::kNotFound);
}

TEST(Disk, ABallastTakesUpSpaceUntilItIsReleased) {
  const TempDir directory;
  const std::string path = directory.At("ballast");
  ASSERT_TRUE(KeepBallast(path, 3 << 20).ok());
  ASSERT_TRUE(KeepBallast(path, 3 << 20).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 3u << 20);
  EXPECT_TRUE(*ReleaseBallast(path));
  EXPECT_FALSE(*ReleaseBallast(path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Disk, ABallastThatDoesNotFitLeavesNothing) {
  const TempDir directory;
  const int64_t free_bytes = *FreeBytes(directory.path());
  EXPECT_GT(free_bytes, 0);
  EXPECT_FALSE(KeepBallast(directory.At("ballast"), INT64_MAX).ok());
  EXPECT_FALSE(std::filesystem::exists(directory.At("ballast")));
}

}  // namespace
}  // namespace tp::store
