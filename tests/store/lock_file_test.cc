#include "store/lock_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "temp_dir.h"

namespace tp::store {
namespace {

using testing::HasSubstr;

class LockFileTest : public testing::Test {
 protected:
  std::unique_ptr<LockFile> Acquire() {
    auto lock = LockFile::Acquire(path_);
    EXPECT_TRUE(lock.ok()) << lock.status();
    return lock.ok() ? *std::move(lock) : nullptr;
  }

  std::string Bytes() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void Overwrite(size_t at, const std::string& bytes) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }

  static Meta AtRevision(int64_t revision, int64_t epoch = 1) {
    Meta meta;
    meta.epoch = epoch;
    meta.revision = revision;
    return meta;
  }

  TempDir directory_;
  const std::string path_ = directory_.At("tpd.lock");
};

TEST_F(LockFileTest, ANewOneKnowsNothing) {
  EXPECT_EQ(Acquire()->state(), LockState{});
  struct stat about {};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(LockFileTest, RemembersWhatWasRecorded) {
  {
    const auto lock = Acquire();
    ASSERT_TRUE(lock->ReserveRuns(1).ok());
    EXPECT_EQ(lock->state().run_mark, 1);
    ASSERT_TRUE(lock->ReserveRuns(2).ok());
    for (int64_t revision = 1; revision <= 2500; ++revision) ASSERT_TRUE(lock->Record(AtRevision(revision)).ok());
  }
  const auto lock = Acquire();
  EXPECT_EQ(lock->state(), (LockState{1, 2500, 2 + kRunBlock}));
  ASSERT_TRUE(lock->ReserveRuns(2 + kRunBlock).ok());
  EXPECT_EQ(lock->state().run_mark, 2 + kRunBlock);
  ASSERT_TRUE(lock->ReserveRuns(3 + kRunBlock).ok());
  EXPECT_EQ(lock->state().run_mark, 3 + 2 * kRunBlock);
}

TEST_F(LockFileTest, TellsAnOlderDatabaseFromANewerOne) {
  const auto lock = Acquire();
  EXPECT_FALSE(lock->IsAheadOf(AtRevision(0)));
  ASSERT_TRUE(lock->RecordDurably(AtRevision(10, 2)).ok());
  EXPECT_TRUE(lock->IsAheadOf(AtRevision(9, 2)));
  EXPECT_FALSE(lock->IsAheadOf(AtRevision(10, 2)));
  EXPECT_FALSE(lock->IsAheadOf(AtRevision(11, 2)));
  EXPECT_TRUE(lock->IsAheadOf(AtRevision(99, 1)));
  EXPECT_FALSE(lock->IsAheadOf(AtRevision(0, 3)));
}

TEST_F(LockFileTest, TheSecondOpenerIsToldThePid) {
  const auto lock = Acquire();
  const auto second = LockFile::Acquire(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("pid " + std::to_string(getpid())));
}

TEST_F(LockFileTest, IsFreeWhenItsHolderWasKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto lock = LockFile::Acquire(path_);
    if (!lock.ok() || !(*lock)->Record(AtRevision(7)).ok()) _exit(1);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  close(ready[1]);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  const auto held = LockFile::Acquire(path_);
  EXPECT_THAT(std::string(Message(held.status())), HasSubstr("pid " + std::to_string(child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(Acquire()->state().revision, 7);
}

// As a child of a killed tpd that has not exec'ed yet.
TEST_F(LockFileTest, AHolderThatIsJustLeavingIsWaitedFor) {
  int held[2];
  ASSERT_EQ(pipe(held), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = LockFile::Acquire(path_);
    if (!lock.ok() || write(held[1], "x", 1) != 1) _exit(1);
    usleep(300'000);
    _exit(0);
  }
  char byte = 0;
  close(held[1]);
  ASSERT_EQ(read(held[0], &byte, 1), 1);
  close(held[0]);
  EXPECT_TRUE(LockFile::Acquire(path_).ok());
  waitpid(child, nullptr, 0);
}

// A write cut short at any byte leaves what the slot before it said.
TEST_F(LockFileTest, ATornWriteLeavesTheOneBefore) {
  {
    const auto lock = Acquire();
    ASSERT_TRUE(lock->Record(AtRevision(1)).ok());
    ASSERT_TRUE(lock->Record(AtRevision(2)).ok());
  }
  const std::string before = Bytes();
  {
    const auto lock = Acquire();  // writes once, in the place of revision 1
    ASSERT_EQ(lock->state().revision, 2);
  }
  const std::string after = Bytes();
  ASSERT_EQ(before.size(), 1024u);
  ASSERT_EQ(after.size(), 1024u);
  const size_t slot = before.substr(0, 512) != after.substr(0, 512) ? 0 : 512;
  for (size_t written = 0; written <= 512; written += 16) {
    Overwrite(0, before);
    Overwrite(slot, after.substr(slot, written));
    EXPECT_EQ(Acquire()->state().revision, 2) << written << " bytes written";
  }
}

TEST_F(LockFileTest, AFirstWriteThatWasTornIsANewFile) {
  Acquire();
  const std::string bytes = Bytes();
  for (size_t written = 0; written < 512; written += 16) {
    std::filesystem::remove(path_);
    std::ofstream(path_) << std::string(512, '\0') << bytes.substr(512, written);
    EXPECT_EQ(Acquire()->state(), LockState{}) << written << " bytes written";
  }
}

TEST_F(LockFileTest, DamageIsRefusedWithAdvice) {
  {
    const auto lock = Acquire();
    ASSERT_TRUE(lock->Record(AtRevision(1)).ok());
    ASSERT_TRUE(lock->Record(AtRevision(2)).ok());
  }
  Overwrite(30, "999");
  Overwrite(512 + 30, "999");
  const auto lock = LockFile::Acquire(path_);
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(lock.status())), HasSubstr("remove the file"));
}

TEST_F(LockFileTest, ASymbolicLinkIsNotFollowed) {
  std::filesystem::create_symlink("elsewhere", path_);
  EXPECT_FALSE(LockFile::Acquire(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.At("elsewhere")));
}

TEST_F(LockFileTest, AMissingDirectoryIsNamed) {
  const auto lock = LockFile::Acquire(directory_.At("missing/tpd.lock"));
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(lock.status())), HasSubstr("missing/tpd.lock"));
}

}  // namespace
}  // namespace tp::store
