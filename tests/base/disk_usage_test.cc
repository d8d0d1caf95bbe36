#include "base/disk_usage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/launch/temp_dir.h"

namespace tp {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

class DiskUsageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto top = OpenDirectory(directory_.path());
    ASSERT_TRUE(top.ok()) << top.status();
    top_ = *std::move(top);
    fs::create_directory(root_);
  }

  void Write(const std::string& name, int64_t bytes) const {
    testing::WriteText(root_ / name, std::string(static_cast<size_t>(bytes), 'x'));
    const UniqueFd fd(open((root_ / name).c_str(), O_RDONLY));
    ASSERT_EQ(fsync(fd.get()), 0);  // blocks are allocated when they are written back
  }

  absl::StatusOr<int64_t> Measure(const std::function<bool()>& stopped) const {
    return AllocatedBytes(top_, "ana", stopped);
  }

  int64_t Bytes(const std::function<bool()>& stopped = [] { return false; }) const {
    const auto bytes = Measure(stopped);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or(-1);
  }

  // The number up to what the directories themselves take.
  void ExpectMiB(int64_t count) const {
    EXPECT_GE(Bytes(), count * kMiB);
    EXPECT_LT(Bytes(), count * kMiB + kMiB / 2);
  }

  const testing::TempDir directory_;
  const fs::path root_ = fs::path(directory_.path()) / "ana";
  Directory top_;
};

TEST_F(DiskUsageTest, SumsWhatLiesAtAnyDepth) {
  ExpectMiB(0);
  Write("a", kMiB);
  Write("b/c", kMiB);
  Write("b/d/e/f", 2 * kMiB);
  ExpectMiB(4);
}

TEST_F(DiskUsageTest, NothingIsNothing) {
  fs::remove(root_);
  EXPECT_EQ(Bytes(), 0);
  testing::WriteText(root_, "a file of the name");
  EXPECT_EQ(Bytes(), 0);
  fs::remove(root_);
  fs::create_directory_symlink("/", root_);
  EXPECT_EQ(Bytes(), 0);
}

TEST_F(DiskUsageTest, AFileOfSeveralNamesCountsOnce) {
  Write("a", kMiB);
  fs::create_directory(root_ / "b");
  fs::create_hard_link(root_ / "a", root_ / "b/again");
  ExpectMiB(1);
}

TEST_F(DiskUsageTest, HolesTakeNothing) {
  Write("a", 1);
  fs::resize_file(root_ / "a", uintmax_t{1} << 40);
  ExpectMiB(0);
}

TEST_F(DiskUsageTest, LinksAreNotFollowed) {
  testing::WriteText(directory_.At("elsewhere/big"), std::string(kMiB, 'x'));
  fs::create_directory_symlink(directory_.At("elsewhere"), root_ / "folder");
  fs::create_symlink(directory_.At("elsewhere/big"), root_ / "file");
  fs::create_directory_symlink("..", root_ / "loop");
  ExpectMiB(0);
}

// In a mount namespace of a process of its own, where the machine lets one be made.
TEST_F(DiskUsageTest, OtherFilesystemsAreLeftOut) {
  Write("a", kMiB);
  fs::create_directory(root_ / "mounted");
  constexpr int kMayNot = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(kMayNot);
    if (mount("none", (root_ / "mounted").c_str(), "tmpfs", 0, nullptr) != 0) _exit(kMayNot);
    testing::WriteText(root_ / "mounted/big", std::string(4 * kMiB, 'x'));
    const auto bytes = Measure([] { return false; });
    _exit(bytes.ok() && *bytes < 2 * kMiB ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == kMayNot) GTEST_SKIP() << "this machine lets nobody mount in a namespace of his own";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Deeper than there are descriptors, and than a path can be long.
TEST_F(DiskUsageTest, AnyDepthIsWalked) {
  constexpr int kDepth = 60;
  const std::string deeper(100, 'd');
  UniqueFd at(open(root_.c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(mkdirat(at.get(), deeper.c_str(), 0700), 0);
    ASSERT_EQ(mkdirat(at.get(), "beside", 0700), 0);
    at = UniqueFd(openat(at.get(), deeper.c_str(), O_RDONLY | O_DIRECTORY));
  }
  UniqueFd file(openat(at.get(), "bottom", O_WRONLY | O_CREAT, 0600));
  ASSERT_TRUE(WriteAll(file.get(), std::string(kMiB, 'x'), "bottom").ok());
  ASSERT_EQ(fsync(file.get()), 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{static_cast<rlim_t>(file.get()) + 8, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const int64_t bytes = Bytes();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GE(bytes, kMiB);
}

// Whether this process has `path` open, as the walk has the directory that it is in.
bool IsOpen(const fs::path& path) {
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (fs::read_symlink(fd.path(), ignored) == path) return true;
  }
  return false;
}

TEST_F(DiskUsageTest, WhatVanishesMeanwhileDoesNotCount) {
  for (const char* gone : {"a/b/c/d", "a/b/c", "a/b", "a"}) {
    Write("a/b/c/d/file", kMiB);
    Write("z/file", kMiB);
    const int64_t bytes = Bytes([&] {
      if (IsOpen(root_ / "a/b/c/d")) fs::remove_all(root_ / gone);
      return false;
    });
    EXPECT_FALSE(fs::exists(root_ / gone)) << gone;
    EXPECT_GE(bytes, kMiB) << gone;
    EXPECT_LT(bytes, kMiB + kMiB / 2) << gone;
  }
}

TEST_F(DiskUsageTest, WhatMovesAwayMeanwhileEndsNothing) {
  Write("a/b/c/file", kMiB);
  Write("a/z/file", kMiB);
  const int64_t bytes = Bytes([&] {
    if (fs::exists(root_ / "a/b") && IsOpen(root_ / "a/b/c")) fs::rename(root_ / "a/b", root_ / "moved");
    return false;
  });
  EXPECT_TRUE(fs::exists(root_ / "moved"));
  EXPECT_GE(bytes, 2 * kMiB);
  ExpectMiB(2);
}

TEST_F(DiskUsageTest, StopsWhenAsked) {
  Write("a/b", kMiB);
  int left = 3;
  EXPECT_EQ(Measure([&] { return --left < 0; }).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(left, -1);
}

TEST_F(DiskUsageTest, WhatCannotBeReadIsSaid) {
  constexpr uid_t kNobody = 65534;
  Write("a/odd\n/file", 1);
  fs::permissions(root_ / "a/odd\n", fs::perms::none);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);  // root may read everything
  const absl::Status status = Measure([] { return false; }).status();
  ASSERT_EQ(seteuid(user), 0);
  fs::permissions(root_ / "a/odd\n", fs::perms::owner_all);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(status),
            "cannot open the directory 'ana/a/odd\\x0a' in " + directory_.path() + ": Permission denied");
}

}  // namespace
}  // namespace tp
