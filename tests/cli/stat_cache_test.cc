#include "cli/stat_cache.h"

#include <ctime>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "temp_dir.h"

namespace tp::cli {
namespace {

using testing::Eq;
using testing::Optional;
namespace fs = std::filesystem;

const std::string kDigest(64, 'a');

class StatCacheTest : public testing::Test {
 protected:
  StatCacheTest() { ::setenv("XDG_CACHE_HOME", home_.path().c_str(), 1); }

  // Of a file that was last changed long ago.
  static FileStamp Old(int64_t bytes = 1) {
    return {.device = 1, .inode = 2, .bytes = bytes, .mtime_ns = 1'000'000'001, .ctime_ns = 1'000'000'002};
  }
  static int64_t NowNs() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  static void Keep(const std::string& path, const FileStamp& stamp) {
    StatCache cache = StatCache::Open("/project");
    cache.Remember(path, stamp, kDigest);
    cache.Save();
  }
  static std::optional<std::string> Recall(const std::string& path, const FileStamp& stamp) {
    return StatCache::Open("/project").Find(path, stamp);
  }
  std::string File() const {
    for (const auto& entry : fs::directory_iterator(home_ / "tp")) return entry.path();
    return "";
  }

  TempDir home_;
};

TEST_F(StatCacheTest, RemembersUntilAnythingOfTheStampChanges) {
  Keep("a b\n\xff", Old());
  EXPECT_THAT(Recall("a b\n\xff", Old()), Optional(kDigest));
  EXPECT_EQ(Recall("other", Old()), std::nullopt);
  for (const auto& change : std::initializer_list<void (*)(FileStamp&)>{
           [](FileStamp& s) { ++s.device; }, [](FileStamp& s) { ++s.inode; }, [](FileStamp& s) { ++s.bytes; },
           [](FileStamp& s) { ++s.mtime_ns; }, [](FileStamp& s) { --s.ctime_ns; }}) {
    FileStamp changed = Old();
    change(changed);
    EXPECT_EQ(Recall("a b\n\xff", changed), std::nullopt);
  }
  EXPECT_EQ(StatCache::Open("/another").Find("a b\n\xff", Old()), std::nullopt);
}

TEST_F(StatCacheTest, WhatIsAsYoungAsTheCacheIsReadAgain) {
  for (const int64_t age_ns : {int64_t{0}, int64_t{10'000'000}, int64_t{-5'000'000'000}}) {
    FileStamp young = Old();
    young.mtime_ns = NowNs() - age_ns;
    Keep("file", young);
    EXPECT_EQ(Recall("file", young), std::nullopt) << "changed " << age_ns << " ns ago";
    young = Old();
    young.ctime_ns = NowNs() - age_ns;
    Keep("file", young);
    EXPECT_EQ(Recall("file", young), std::nullopt);
  }
  FileStamp settled = Old();
  settled.mtime_ns = NowNs() / 1'000'000'000 * 1'000'000'000 - 1'000'000'000 + 1;
  Keep("file", settled);
  EXPECT_THAT(Recall("file", settled), Optional(kDigest));
  FileStamp whole_seconds = settled;
  whole_seconds.mtime_ns = NowNs() / 1'000'000'000 * 1'000'000'000 - 1'000'000'000;
  Keep("file", whole_seconds);
  EXPECT_EQ(Recall("file", whole_seconds), std::nullopt) << "a clock that may tick every two seconds";
}

TEST_F(StatCacheTest, ADamagedCacheIsNone) {
  Keep("file", Old());
  std::string text = ReadFile(File());
  ASSERT_FALSE(text.empty());
  for (size_t at = 0; at < text.size(); at += 23) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(File(), std::ios::binary) << damaged;
    EXPECT_EQ(Recall("file", Old()), std::nullopt) << at;
    std::ofstream(File(), std::ios::binary) << text.substr(0, at);
    EXPECT_EQ(Recall("file", Old()), std::nullopt) << at;
  }
  Keep("file", Old());
  EXPECT_THAT(Recall("file", Old()), Optional(kDigest)) << "and the next one is whole again";
}

TEST_F(StatCacheTest, WithoutAPlaceNothingIsKept) {
  ::setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  Keep("file", Old());
  EXPECT_EQ(Recall("file", Old()), std::nullopt);
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::unsetenv("HOME");
  Keep("file", Old());
  EXPECT_EQ(Recall("file", Old()), std::nullopt);
}

TEST_F(StatCacheTest, OnlyItsUserReadsIt) {
  Keep("file", Old());
  struct stat about {};
  ASSERT_EQ(::stat(File().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777u, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(home_ / "tp"), {}), 1) << "and nothing else lies there";
}

}  // namespace
}  // namespace tp::cli
