#include "snapshot/checkout.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "sample.h"

namespace tp::snapshot {
namespace {

using tp::testing::ReadText;
using tp::testing::WriteText;
namespace fs = std::filesystem;

class CheckoutTest : public StoreTest {
 protected:
  std::string Target(const std::string& name = "work") {
    fs::create_directories(dir_.At(name));
    return dir_.At(name);
  }
  mode_t ModeOf(const std::string& path) {
    struct stat about {};
    EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
    return about.st_mode & 07777u;
  }
};

TEST_F(CheckoutTest, WritesTheTreeAsItWas) {
  Put({"print(1)\n", "#!/bin/sh\n", ""});
  const auto info = Commit({File("train.py", "print(1)\n"), Dir("bin"), File("bin/run", "#!/bin/sh\n", true),
                            Dir("bin.d"), File("bin.d/empty", ""), Link("latest", "bin/run"), Dir("empty dir"),
                            File("bin/\xff", "print(1)\n"), File("TRAIN.py", "")});
  ASSERT_TRUE(info.ok()) << info.status();
  const auto cost = Checkout(dir_.path(), info->id, Target());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->files, 5);
  EXPECT_EQ(ReadText(dir_.At("work/train.py")), "print(1)\n");
  EXPECT_EQ(ReadText(dir_.At("work/bin/\xff")), "print(1)\n");
  EXPECT_EQ(ReadText(dir_.At("work/TRAIN.py")), "");
  EXPECT_EQ(fs::read_symlink(dir_.At("work/latest")), "bin/run");
  EXPECT_TRUE(fs::is_empty(dir_.At("work/empty dir")));
  EXPECT_EQ(ModeOf(dir_.At("work/train.py")), 0644u);
  EXPECT_EQ(ModeOf(dir_.At("work/bin/run")), 0755u);
  EXPECT_EQ(ModeOf(dir_.At("work/bin")), 0755u);
}

TEST_F(CheckoutTest, AJobsChangesNeverReachTheBlob) {
  Put({"one"});
  const auto info = Commit({File("a", "one"), File("b", "one")});
  ASSERT_TRUE(Checkout(dir_.path(), info->id, Target()).ok());
  struct stat about {};
  ASSERT_EQ(stat(dir_.At("work/a").c_str(), &about), 0);
  EXPECT_EQ(about.st_nlink, 1u);
  WriteText(dir_.At("work/a"), "changed");
  EXPECT_EQ(ReadText(dir_.At("work/b")), "one");
  ASSERT_TRUE(Checkout(dir_.path(), info->id, Target("again")).ok());
  EXPECT_EQ(ReadText(dir_.At("again/a")), "one");
}

TEST_F(CheckoutTest, SeveralAtOnce) {
  Put({"one"});
  const auto info = Commit({Dir("d"), File("d/a", "one")});
  std::array<absl::Status, 4> results;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string target = Target(fmt::format("work-{}", i));
    threads.emplace_back([&, i, target] { results[i] = Checkout(dir_.path(), info->id, target).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
}

TEST_F(CheckoutTest, WhatIsGoneOrDamagedSaysSo) {
  EXPECT_EQ(Checkout(dir_.path(), Digest("none"), Target()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Checkout(dir_.path(), "../../etc", Target()).status().code(), absl::StatusCode::kInvalidArgument);
  Put({"one", "two"});
  const auto first = Commit({File("a", "one")});
  const auto second = Commit({File("a", "two")});
  fs::remove(dir_.At(".snapshots/blobs/" + Digest("one").substr(0, 2) + "/" + Digest("one")));
  EXPECT_EQ(Checkout(dir_.path(), first->id, Target()).status().code(), absl::StatusCode::kNotFound);
  fs::copy_file(dir_.At(".snapshots/manifests/" + second->id), dir_.At(".snapshots/manifests/" + first->id),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(Checkout(dir_.path(), first->id, Target()).status().code(), absl::StatusCode::kDataLoss);
}

// Someone plants a link where the checkout is about to write.
TEST_F(CheckoutTest, FollowsNothingOutOfItsDestination) {
  Put({"one"});
  const auto info = Commit({Dir("d"), File("d/a", "one"), File("file", "one")});
  fs::create_directories(dir_.At("outside"));
  for (const char* planted : {"d", "file"}) {
    const std::string target = Target(fmt::format("work-{}", planted));
    fs::create_symlink(dir_.At("outside") + (planted[0] == 'f' ? "/new" : ""), target + "/" + planted);
    EXPECT_FALSE(Checkout(dir_.path(), info->id, target).ok());
  }
  EXPECT_TRUE(fs::is_empty(dir_.At("outside")));
}

}  // namespace
}  // namespace tp::snapshot
