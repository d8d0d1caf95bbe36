#include "cli/snapshot_pack.h"

#include <map>

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include "base/strings.h"
#include "cli/render/text.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

class SnapshotPackTest : public testing::Test {
 protected:
  void SetUp() override { UseUtf8Locale(); }
};

absl::StatusOr<PackedSnapshot> Pack(const TempDir& dir) {
  auto tree = ScanTree(dir.path(), kMaxSnapshotBytes);
  if (!tree.ok()) return tree.status();
  return PackTree(*tree, [](int64_t, int64_t) {});
}

void Fill(const TempDir& dir) {
  dir.Write("train.py", "print('hello')\n");
  dir.Write("run.sh", "#!/bin/sh\n", 0755);
  dir.Write("data/sub/ü 訓練.txt", "x");
  dir.Write("data/" + std::string(180, 'n') + "/" + std::string(180, 'm'), "long name");
  dir.Write("big", std::string(700'000, 'b'));
  dir.Link("latest", "data/sub");
}

TEST_F(SnapshotPackTest, TheSameContentGivesTheSameBytes) {
  TempDir first;
  TempDir second;
  Fill(first);
  Fill(second);
  const utimbuf other_time{.actime = 1'000'000, .modtime = 2'000'000};
  ASSERT_EQ(::utime((second / "train.py").c_str(), &other_time), 0);
  ASSERT_EQ(::chmod((second / "train.py").c_str(), 0600), 0);
  const auto a = Pack(first);
  const auto b = Pack(second);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->sha256, b->sha256);
  EXPECT_EQ(a->sha256.size(), 64U);
  EXPECT_EQ(a->files, 5);
  EXPECT_EQ(::lseek(a->archive.get(), 0, SEEK_END), a->archive_bytes);
}

// A change of this value means that every directory is uploaded anew: not to be done lightly.
TEST_F(SnapshotPackTest, TheBytesAreTheSameFromVersionToVersion) {
  TempDir dir;
  dir.Write("a/train.py", "print('hello')\n");
  dir.Link("link", "a");
  const auto packed = Pack(dir);
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->sha256, "64b11c48bcf0fb31032ba3bbd440d99de45b6f2f24cb25fd230a0fbc7749ab0c");
}

TEST_F(SnapshotPackTest, AnyChangeGivesOtherBytes) {
  TempDir dir;
  Fill(dir);
  const std::string before = Pack(dir)->sha256;
  dir.Write("train.py", "print('hellO')\n");
  const std::string content = Pack(dir)->sha256;
  ASSERT_EQ(::chmod((dir / "train.py").c_str(), 0755), 0);
  const std::string mode = Pack(dir)->sha256;
  EXPECT_NE(before, content);
  EXPECT_NE(content, mode);
}

struct Read {
  mode_t mode = 0;
  std::string content;
  std::string link;
  int64_t mtime = -1;
  int64_t uid = -1;
};

std::map<std::string, Read> Unpack(const PackedSnapshot& packed) {
  std::map<std::string, Read> entries;
  ::lseek(packed.archive.get(), 0, SEEK_SET);
  archive* reader = archive_read_new();
  archive_read_support_format_tar(reader);
  archive_read_open_fd(reader, packed.archive.get(), 65536);
  archive_entry* header = nullptr;
  while (archive_read_next_header(reader, &header) == ARCHIVE_OK) {
    Read& read = entries[archive_entry_pathname(header)];
    read.mode = archive_entry_mode(header);
    read.mtime = archive_entry_mtime(header);
    read.uid = archive_entry_uid(header);
    if (const char* target = archive_entry_symlink(header)) read.link = target;
    read.content.resize(static_cast<size_t>(archive_entry_size(header)));
    archive_read_data(reader, read.content.data(), read.content.size());
  }
  archive_read_free(reader);
  return entries;
}

TEST_F(SnapshotPackTest, KeepsContentModesAndLinks) {
  TempDir dir;
  Fill(dir);
  const auto packed = Pack(dir);
  ASSERT_TRUE(packed.ok()) << packed.status();
  const auto entries = Unpack(*packed);
  EXPECT_EQ(entries.size(), 9U);
  EXPECT_EQ(entries.at("train.py").content, "print('hello')\n");
  EXPECT_EQ(entries.at("train.py").mode, S_IFREG | 0644U);
  EXPECT_EQ(entries.at("run.sh").mode, S_IFREG | 0755U);
  EXPECT_EQ(entries.at("data/sub/").mode, S_IFDIR | 0755U);
  EXPECT_EQ(entries.at("data/sub/ü 訓練.txt").content, "x");
  EXPECT_EQ(entries.at("latest").link, "data/sub");
  EXPECT_EQ(entries.at("big").content, std::string(700'000, 'b'));
  for (const auto& [name, read] : entries) {
    EXPECT_EQ(read.mtime, 0) << name;
    EXPECT_EQ(read.uid, 0) << name;
  }
}

TEST_F(SnapshotPackTest, KeepsNamesThatAreNotUtf8) {
  TempDir dir;
  dir.Write("latin1-\xfc", "x");
  const auto packed = Pack(dir);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(Unpack(*packed).count("latin1-\xfc"), 1U);
}

TEST_F(SnapshotPackTest, AnEmptyDirectoryIsASnapshotToo) {
  TempDir dir;
  const auto packed = Pack(dir);
  ASSERT_TRUE(packed.ok());
  EXPECT_GT(packed->archive_bytes, 0);
  EXPECT_EQ(packed->files, 0);
}

TEST_F(SnapshotPackTest, NoticesAFileThatShrinks) {
  TempDir dir;
  dir.Write("log", "0123456789");
  const auto tree = ScanTree(dir.path(), kMaxSnapshotBytes);
  ASSERT_TRUE(tree.ok());
  dir.Write("log", "01");
  const auto packed = PackTree(*tree, [](int64_t, int64_t) {});
  EXPECT_EQ(std::string(Message(packed.status())), "log: became shorter while it was read; submit again");
}

TEST_F(SnapshotPackTest, TellsItsProgress) {
  TempDir dir;
  dir.Write("big", std::string(700'000, 'b'));
  const auto tree = ScanTree(dir.path(), kMaxSnapshotBytes);
  int64_t last = 0;
  ASSERT_TRUE(PackTree(*tree, [&](int64_t done_bytes, int64_t total_bytes) {
                EXPECT_GT(done_bytes, last);
                EXPECT_EQ(total_bytes, 700'000);
                last = done_bytes;
              }).ok());
  EXPECT_EQ(last, 700'000);
}

}  // namespace
}  // namespace tp::cli
