#include "launch/attempt_reader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>

#include <atomic>
#include <cstdarg>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/launch/temp_dir.h"

namespace {

std::atomic<int> g_opens = 0;

using OpenAt = int (*)(int, const char*, int, ...);

}  // namespace

// Counts what the reader opens: the cost that an attempt without news may have.
extern "C" int openat(int dir_fd, const char* path, int flags, ...) {
  static const auto real = reinterpret_cast<OpenAt>(dlsym(RTLD_NEXT, "openat"));
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  ++g_opens;
  return real(dir_fd, path, flags, mode);
}

namespace tp::launch {
namespace {

using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

constexpr char kKey[] = "tp-lab-e1-7-s0-a1";

class AttemptReaderTest : public ::testing::Test {
 protected:
  void WriteRecord(const std::string& name, int pool, int rank, const std::string& fields,
                   const std::string& nonce = "n1") {
    WriteText(dir_.At(".new"),
              fmt::format("tp-record 1\nkey={}\nnonce={}\npool={}\nrank={}\nhost=h\nboot_id=b\n{}end\n", kKey, nonce,
                          pool, rank, fields));
    fs::rename(dir_.At(".new"), dir_.At(name));
  }
  void WriteClaims(int pool, int rank, const std::string& nonce = "n1") {
    WriteRecord(fmt::format("{}-{}.claim", pool, rank), pool, rank, "runner_pid=5\nrunner_start_ticks=6\n", nonce);
  }
  void WriteStarted(int pool, int rank, const std::string& nonce = "n1") {
    WriteRecord(fmt::format("{}-{}.started", pool, rank), pool, rank, "started_boot_us=1\nstarted_unix_us=2\n", nonce);
  }
  void WriteEnded(int pool, int rank, const std::string& nonce = "n1") {
    WriteRecord(fmt::format("{}-{}.exit", pool, rank), pool, rank,
                "started_boot_us=1\nstarted_unix_us=2\nended_boot_us=3\nended_unix_us=4\nexit=exited\ncode=0\n"
                "term_signal=0\nsignalled=no\n",
                nonce);
  }
  void WriteFailed(int pool, int rank) {
    WriteRecord(fmt::format("{}-{}.exit", pool, rank), pool, rank,
                "started_boot_us=1\nstarted_unix_us=2\nended_boot_us=3\nended_unix_us=4\nexit=exited\ncode=1\n"
                "term_signal=0\nsignalled=no\n");
  }
  void WriteBeat(int pool, int rank, int count) {
    WriteRecord(fmt::format("{}-{}.heartbeat", pool, rank), pool, rank,
                fmt::format("count={:020}\nbeat_boot_us=1\nbeat_unix_us=2\n", count));
  }
  void Own(const std::string& nonce = "n1") { WriteRecord("attempt.claim", 0, 0, "owner=launch\n", nonce); }

  AttemptReader Reader(const ReaderOptions& options = {}) { return {kKey, dir_.path(), {2, 1}, options}; }

  TempDir dir_;
};

TEST_F(AttemptReaderTest, AFailedRanksLogIsLookedAt) {
  Own();
  WriteText(dir_.At("0-0.log"), "CUDA out of memory\n");
  WriteText(dir_.At("0-1.log"), "CUDA out of memory\n" + std::string(70'000, '.'));
  WriteFailed(0, 0);
  WriteFailed(0, 1);
  WriteEnded(1, 0);
  AttemptReader reader = Reader();
  const auto files = reader.Read();
  ASSERT_TRUE(files.ok());
  EXPECT_EQ((*files)->ranks[0].ended->log_mark, LogMark::kCudaOutOfMemory);
  EXPECT_EQ((*files)->ranks[1].ended->log_mark, LogMark::kNone) << "only the end counts";
  EXPECT_EQ((*files)->ranks[2].ended->log_mark, LogMark::kNone);
}

TEST_F(AttemptReaderTest, WhatStandsInTheLogsPlaceHoldsUpNothing) {
  Own();
  fs::create_symlink("/etc/passwd", dir_.At("0-0.log"));
  fs::create_directory(dir_.At("0-1.log"));
  ASSERT_EQ(mkfifo(dir_.At("1-0.log").c_str(), 0600), 0);
  WriteFailed(0, 0);
  WriteFailed(0, 1);
  WriteFailed(1, 0);
  AttemptReader reader = Reader();
  const auto files = reader.Read();
  ASSERT_TRUE(files.ok()) << files.status();
  for (const RankFiles& rank : (*files)->ranks) EXPECT_EQ(rank.ended->log_mark, LogMark::kNone);
}

TEST_F(AttemptReaderTest, AMissingDirectoryIsAnAttemptWithoutFiles) {
  AttemptReader reader(kKey, dir_.At("none"), {1}, {});
  const auto files = reader.Read();
  ASSERT_TRUE(files.ok());
  EXPECT_FALSE((*files)->claim);
  EXPECT_EQ((*files)->ranks.size(), 1u);
}

TEST_F(AttemptReaderTest, ReadsWhatTheRanksLeft) {
  Own();
  for (const auto& [pool, rank] : {std::pair{0, 0}, {0, 1}, {1, 0}}) WriteClaims(pool, rank);
  WriteStarted(0, 0);
  WriteBeat(0, 0, 12);
  WriteEnded(1, 0);
  AttemptReader reader = Reader();
  const AttemptFiles& files = **reader.Read();
  EXPECT_EQ(files.claim->nonce, "n1");
  EXPECT_TRUE(files.ranks[0].started);
  EXPECT_EQ(files.ranks[0].heartbeat->count, 12);
  EXPECT_FALSE(files.ranks[0].ended);
  EXPECT_TRUE(files.ranks[1].claim);
  EXPECT_FALSE(files.ranks[1].started);
  EXPECT_EQ(files.ranks[2].pool, 1);
  EXPECT_TRUE(files.ranks[2].ended);
  EXPECT_TRUE(files.ranks[2].started) << "the end record repeats the start";
}

TEST_F(AttemptReaderTest, SeesEachRecordAsItComes) {
  AttemptReader reader = Reader();
  EXPECT_FALSE((*reader.Read())->claim);
  Own();
  WriteClaims(0, 0);
  EXPECT_TRUE((*reader.Read())->ranks[0].claim);
  WriteStarted(0, 0);
  EXPECT_TRUE((*reader.Read())->ranks[0].started);
  WriteEnded(0, 0);
  EXPECT_TRUE((*reader.Read())->ranks[0].ended);
}

TEST_F(AttemptReaderTest, RecordsOfAnotherLaunchAreNoEvidence) {
  Own("n2");
  WriteClaims(0, 0, "n1");
  WriteEnded(0, 0, "n1");
  WriteEnded(0, 1, "n2");
  AttemptReader reader = Reader();
  const AttemptFiles& files = **reader.Read();
  EXPECT_FALSE(files.ranks[0].claim);
  EXPECT_FALSE(files.ranks[0].ended);
  EXPECT_TRUE(files.ranks[1].ended);
}

TEST_F(AttemptReaderTest, WithoutAnOwnerNoRecordCounts) {
  WriteEnded(0, 0);
  AttemptReader reader = Reader();
  EXPECT_FALSE((*reader.Read())->ranks[0].ended);
  Own();
  EXPECT_TRUE((*reader.Read())->ranks[0].ended);
}

TEST_F(AttemptReaderTest, ATornRecordIsAbsentUntilItIsWhole) {
  Own();
  WriteText(dir_.At("0-0.exit"), "tp-record 1\nkey=");
  AttemptReader reader = Reader();
  EXPECT_FALSE((*reader.Read())->ranks[0].ended);
  WriteEnded(0, 0);
  EXPECT_TRUE((*reader.Read())->ranks[0].ended);
}

TEST_F(AttemptReaderTest, NamesOfNoRankAreSkipped) {
  Own();
  for (const char* name :
       {"9-9.exit", "0-99.exit", "0.exit", "-.exit", "0-0", "0-0.log", "1-", "18446744073709551616-0.exit"}) {
    WriteText(dir_.At(name), "x");
  }
  AttemptReader reader = Reader();
  EXPECT_TRUE(reader.Read().ok());
}

TEST_F(AttemptReaderTest, UnreadableStorageIsAnErrorAndNotAnAnswer) {
  Own();
  fs::create_directory(dir_.At("0-0.exit"));
  AttemptReader reader = Reader();
  EXPECT_FALSE(reader.Read().ok());
  fs::remove(dir_.At("0-0.exit"));
  EXPECT_TRUE(reader.Read().ok());
}

TEST_F(AttemptReaderTest, AClaimWithoutAnOwnerIsAnError) {
  WriteText(dir_.At("attempt.claim"), "tp-rec");
  AttemptReader reader = Reader();
  EXPECT_FALSE(reader.Read().ok());
}

TEST_F(AttemptReaderTest, AVanishedDirectoryIsAnErrorOnceItHadAnOwner) {
  Own();
  AttemptReader reader = Reader();
  ASSERT_TRUE(reader.Read().ok());
  fs::remove(dir_.At("attempt.claim"));
  fs::remove(dir_.path());
  EXPECT_FALSE(reader.Read().ok());
}

TEST_F(AttemptReaderTest, SeesTheFenceClose) {
  Own();
  WriteText(dir_.At("fence"), "open\n");
  AttemptReader reader = Reader();
  EXPECT_FALSE((*reader.Read())->fence_closed);
  WriteText(dir_.At("fence"), "closed\n");
  EXPECT_TRUE((*reader.Read())->fence_closed);
}

TEST_F(AttemptReaderTest, HeartbeatsAreReadAtTheirInterval) {
  Own();
  WriteClaims(0, 0);
  WriteBeat(0, 0, 1);
  AttemptReader every_time = Reader({.settle = absl::ZeroDuration(), .heartbeat_every = absl::ZeroDuration()});
  AttemptReader seldom = Reader({.settle = absl::ZeroDuration(), .heartbeat_every = absl::Hours(1)});
  ASSERT_TRUE(every_time.Read().ok());
  ASSERT_TRUE(seldom.Read().ok());
  WriteBeat(0, 0, 2);
  EXPECT_EQ((*every_time.Read())->ranks[0].heartbeat->count, 2);
  EXPECT_EQ((*seldom.Read())->ranks[0].heartbeat->count, 1);
}

TEST_F(AttemptReaderTest, AnUnchangedAttemptCostsAConstantNumberOfOpens) {
  const int ranks = 64;
  Own();
  for (int rank = 0; rank < ranks; ++rank) {
    WriteClaims(0, rank);
    WriteStarted(0, rank);
    WriteBeat(0, rank, 1);
  }
  AttemptReader reader(kKey, dir_.path(), {ranks}, {.settle = absl::ZeroDuration(), .heartbeat_every = absl::Hours(1)});
  g_opens = 0;
  ASSERT_TRUE(reader.Read().ok());
  EXPECT_GE(g_opens, 2 * ranks) << "the count itself works";
  g_opens = 0;
  ASSERT_TRUE(reader.Read().ok());
  EXPECT_EQ(g_opens, 0);
  WriteEnded(0, 3);
  g_opens = 0;
  ASSERT_TRUE((*reader.Read())->ranks[3].ended);
  EXPECT_LE(g_opens, 2) << "the list and the new record";
}

}  // namespace
}  // namespace tp::launch
