// Storage that fails: nothing is concluded, and never success.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "harness.h"

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

class StorageTest : public RankTest {};
TP_RANK_FOR_EVERY_KIND(StorageTest);

constexpr rlimit kNoFileGrows = {.rlim_cur = 0, .rlim_max = 0};

TEST_P(StorageTest, MissingDirectory) {
  fs::remove_all(attempt_.dir());
  EXPECT_EQ(attempt_.Start(GetParam(), {"true"}).Wait(), kStorage);
}

TEST_P(StorageTest, ClaimThatCannotBeWritten) {
  Child runner = attempt_.Start(
      GetParam(), Shell("touch ran"), {},
      {.before_exec = [] { setrlimit(RLIMIT_FSIZE, &kNoFileGrows); }, .stdin_content = {}, .environment = {}});
  EXPECT_EQ(runner.Wait(), kStorage);
  EXPECT_FALSE(attempt_.HasMark("ran"));
  EXPECT_FALSE(fs::exists(attempt_.dir() / "attempt.claim"));
}

TEST_P(StorageTest, EndRecordThatCannotBeWritten) {
  Child runner = attempt_.Start(GetParam(), Shell("touch ready; while [ ! -e go ]; do sleep 0.02; done"));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  attempt_.Started();
  ASSERT_EQ(prlimit(runner.pid(), RLIMIT_FSIZE, &kNoFileGrows, nullptr), 0);
  WriteFile(attempt_.work() / "go", "");
  EXPECT_EQ(runner.Wait(), kStorage);
  EXPECT_FALSE(fs::exists(attempt_.File(".exit")));
}

TEST_P(StorageTest, DirectoryRemovedUnderTheJob) {
  const std::string wait = "while [ -e '" + attempt_.dir().string() + "' ]; do sleep 0.02; done";
  Child runner = attempt_.Start(GetParam(), Shell("touch ready; " + wait));
  ASSERT_TRUE(attempt_.WaitForMark("ready"));
  attempt_.Started();
  EXPECT_TRUE(Eventually([&] {
    std::error_code error;
    fs::remove_all(attempt_.dir(), error);
    return !fs::exists(attempt_.dir());
  }));
  EXPECT_EQ(runner.Wait(), kStorage);
}

// A tmpfs of its own over the attempt's directory, in the mount namespace of the test's process.
class FullDiskTest : public AttemptTest {
 protected:
  void SetUp() override {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", attempt_.dir().c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "needs the right to mount";
    }
    mounted_ = true;
    fs::create_directory(attempt_.work());
    WriteFile(attempt_.dir() / "fence", "open\n");
  }
  void TearDown() override {
    if (mounted_) umount2(attempt_.dir().c_str(), MNT_DETACH);
  }

 private:
  bool mounted_ = false;
};

TEST_F(FullDiskTest, ReadOnlyStorageStartsNothing) {
  ASSERT_EQ(mount("none", attempt_.dir().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  for (RunnerKind kind : {RunnerKind::kBinary, RunnerKind::kDash, RunnerKind::kBusybox}) {
    EXPECT_EQ(attempt_.Start(kind, {"true"}).Wait(), kStorage) << Name(kind);
  }
}

TEST_F(FullDiskTest, FullFromTheStartStartsNothing) {
  WriteFile(attempt_.dir() / "filler", std::string(2 << 20, 'x'));
  for (RunnerKind kind : {RunnerKind::kBinary, RunnerKind::kDash, RunnerKind::kBusybox}) {
    EXPECT_EQ(attempt_.Start(kind, {"true"}).Wait(), kStorage) << Name(kind);
  }
}

TEST_F(FullDiskTest, EndRecordHasItsPlaceAndLostOutputIsCounted) {
  Child runner =
      attempt_.Start(RunnerKind::kBinary, Shell("head -c 1500000 /dev/zero; cat /dev/zero >filler; echo end"),
                     {.extra = {"--log-stall-ms", "0"}});
  EXPECT_EQ(runner.Wait(), 0);
  const Record exit = attempt_.Exit();
  EXPECT_EQ(exit.at("code"), "0");
  EXPECT_GT(std::stoll(exit.at("log_lost_bytes")), 400'000);
}

TEST_F(FullDiskTest, LostOutputIsToldInTheSystemLogOnceThereIsSpace) {
  Child runner = attempt_.Start(RunnerKind::kBinary,
                                Shell("cat /dev/zero >filler 2>/dev/null; head -c 1500000 /dev/zero; touch full; "
                                      "while [ -e full ]; do sleep 0.01; done; echo end"),
                                {.extra = {"--log-stall-ms", "0"}});
  ASSERT_TRUE(attempt_.WaitForMark("full"));
  ASSERT_EQ(mount("none", attempt_.dir().c_str(), nullptr, MS_REMOUNT, "size=16m"), 0);
  fs::remove(attempt_.work() / "full");
  EXPECT_EQ(runner.Wait(), 0);
  const Record exit = attempt_.Exit();
  EXPECT_NE(exit.at("log_lost_bytes"), "0");
  const std::string told = ReadFile(attempt_.File(".system.log"));
  EXPECT_NE(told.find("the storage refused the job's output"), std::string::npos) << told;
  EXPECT_EQ(std::stoll(exit.at("log_bytes")) + std::stoll(exit.at("log_lost_bytes")), 1'500'004);
}

TEST_F(FullDiskTest, OutputWaitsForSpace) {
  Child runner =
      attempt_.Start(RunnerKind::kBinary,
                     Shell("cat /dev/zero >filler 2>/dev/null; touch full; head -c 300000 /dev/zero; touch written"));
  ASSERT_TRUE(attempt_.WaitForMark("full"));
  fs::remove(attempt_.work() / "filler");
  EXPECT_EQ(runner.Wait(), 0);
  EXPECT_EQ(attempt_.Exit().at("log_bytes"), attempt_.Exit().at("log_lost_bytes") == "0"
                                                 ? std::to_string(ReadFile(attempt_.File(".log")).size())
                                                 : "all");
}

}  // namespace
}  // namespace tp::rank_test
