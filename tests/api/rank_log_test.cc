#include "api/rank_log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temp_dir.h"

namespace tp::api {
namespace {

constexpr char kName[] = "0-0.log";

class RankLogTest : public testing::Test {
 protected:
  RankLog Open() const { return RankLog(std::make_shared<const Directory>(*OpenDirectory(dir_.path())), kName); }

  // As the runner does it: rename, then begin anew.
  void Rotate(int64_t begin) const {
    std::filesystem::rename(dir_.At(kName), dir_.At(fmt::format("{}.{:020}", kName, begin)));
    dir_.Write(kName, "");
  }

  // Everything there is, in pieces of `piece` bytes.
  static std::string ReadAll(RankLog& log, size_t piece = 3) {
    std::string all;
    int64_t offset = 0;
    for (;;) {
      const auto bytes = log.Read(offset, piece);
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      if (!bytes.ok() || bytes->data.empty()) return all;
      all += bytes->data;
      offset = bytes->offset + static_cast<int64_t>(bytes->data.size());
    }
  }

  TempDir dir_;
};

TEST_F(RankLogTest, AMissingFileIsAnEmptyLog) {
  RankLog log = Open();
  EXPECT_EQ(ReadAll(log), "");
  EXPECT_EQ(*log.TailOffset(10), 0);
  dir_.Write(kName, "now");
  EXPECT_EQ(ReadAll(log), "now");
}

TEST_F(RankLogTest, GrowsWhileRead) {
  dir_.Write(kName, "one\n");
  RankLog log = Open();
  EXPECT_EQ(log.Read(0, 100)->data, "one\n");
  EXPECT_EQ(log.Read(4, 100)->data, "");
  dir_.Append(kName, "two\n");
  EXPECT_EQ(log.Read(4, 100)->data, "two\n");
}

TEST_F(RankLogTest, ReadsAcrossSegments) {
  dir_.Write(kName, "0123");
  Rotate(0);
  dir_.Append(kName, "45678");
  Rotate(4);
  dir_.Append(kName, "9ab");
  RankLog log = Open();
  EXPECT_EQ(ReadAll(log), "0123456789ab");
  EXPECT_EQ(log.Read(6, 100)->data, "678");
  EXPECT_EQ(log.Read(9, 100)->data, "9ab");
  EXPECT_EQ(log.Read(12, 100)->data, "");
  EXPECT_EQ(log.Read(1, 2)->data, "12") << "backwards";
}

TEST_F(RankLogTest, RotationWhileFollowingLosesNothing) {
  dir_.Write(kName, "abc");
  RankLog log = Open();
  EXPECT_EQ(log.Read(0, 100)->data, "abc");
  dir_.Append(kName, "def");
  Rotate(0);
  dir_.Append(kName, "ghi");
  EXPECT_EQ(log.Read(3, 100)->data, "def");
  EXPECT_EQ(log.Read(6, 100)->data, "ghi");
}

TEST_F(RankLogTest, BetweenRenameAndNewFileThereIsNothingYet) {
  dir_.Write(kName, "abc");
  RankLog log = Open();
  EXPECT_EQ(log.Read(0, 100)->data, "abc");
  std::filesystem::rename(dir_.At(kName), dir_.At(fmt::format("{}.{:020}", kName, 0)));
  EXPECT_EQ(log.Read(3, 100)->data, "");
  EXPECT_EQ(*log.TailOffset(0), 3);
  dir_.Write(kName, "def");
  EXPECT_EQ(log.Read(3, 100)->data, "def");
}

TEST_F(RankLogTest, SaysWhereItGoesOnWhenTheOldestIsGone) {
  dir_.Write(fmt::format("{}.{:020}", kName, 100), "old");
  dir_.Write(kName, "new");
  RankLog log = Open();
  const auto bytes = log.Read(0, 100);
  EXPECT_EQ(bytes->offset, 100);
  EXPECT_EQ(bytes->data, "old");
  EXPECT_EQ(log.Read(103, 100)->data, "new");
  EXPECT_EQ(*log.TailOffset(5), 100);
}

TEST_F(RankLogTest, OtherNamesAreNoSegments) {
  dir_.Write("0-0.log.tmp", "x");
  dir_.Write("0-0.log.1", "x");
  dir_.Write("0-0.log.-0000000000000000001", "x");
  dir_.Write("0-1.log.00000000000000000000", "x");
  dir_.Write(kName, "abc");
  RankLog log = Open();
  EXPECT_EQ(ReadAll(log), "abc");
}

TEST_F(RankLogTest, ALinkInPlaceOfTheLogIsNotFollowed) {
  dir_.Write("elsewhere", "secret");
  ASSERT_EQ(symlink("elsewhere", dir_.At(kName).c_str()), 0);
  RankLog log = Open();
  EXPECT_EQ(log.Read(0, 100).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RankLogTest, Tail) {
  dir_.Write(kName, "1\n2\n3\n");
  RankLog log = Open();
  EXPECT_EQ(*log.TailOffset(0), 6);
  EXPECT_EQ(*log.TailOffset(1), 4);
  EXPECT_EQ(*log.TailOffset(2), 2);
  EXPECT_EQ(*log.TailOffset(3), 0);
  EXPECT_EQ(*log.TailOffset(100), 0);
  dir_.Append(kName, "open");
  EXPECT_EQ(*log.TailOffset(1), 6) << "a line without its end is a line";
  Rotate(0);
  dir_.Append(kName, " line\nlast\n");
  EXPECT_EQ(*log.TailOffset(1), 16);
  EXPECT_EQ(*log.TailOffset(2), 6) << "across segments";
  EXPECT_EQ(*log.TailOffset(3), 4);
}

TEST_F(RankLogTest, TailOfLongLines) {
  const std::string line = std::string(200'000, 'x') + "\n";
  dir_.Write(kName, line + line + line);
  RankLog log = Open();
  EXPECT_EQ(*log.TailOffset(1), 400'002);
  EXPECT_EQ(*log.TailOffset(2), 200'001);
}

// A writer that rotates as fast as it can, a reader that follows: all bytes, in order.
TEST_F(RankLogTest, FollowsAFastWriter) {
  constexpr int kSegments = 300;
  constexpr int kWritesPerSegment = 20;
  std::string written;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    int64_t begin = 0;
    for (int segment = 0; segment < kSegments; ++segment) {
      for (int i = 0; i < kWritesPerSegment; ++i) {
        const std::string text = fmt::format("{}.{}\r", segment, i);
        dir_.Append(kName, text);
        written += text;
      }
      if (segment + 1 < kSegments) {
        Rotate(begin);
        begin = static_cast<int64_t>(written.size());
      }
    }
    done = true;
  });
  RankLog log = Open();
  std::string read;
  for (;;) {
    const bool last = done;
    const auto bytes = log.Read(static_cast<int64_t>(read.size()), 64);
    if (absl::IsUnavailable(bytes.status())) continue;  // rotated under the read: it asks to try again
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (!bytes.ok() || bytes->offset != static_cast<int64_t>(read.size())) break;
    read += bytes->data;
    if (bytes->data.empty() && last) break;
  }
  writer.join();
  EXPECT_EQ(read, written);
}

}  // namespace
}  // namespace tp::api
