#include "launch/snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/launch/tar_builder.h"
#include "tests/launch/temp_dir.h"

namespace tp::launch {
namespace {

using ::testing::HasSubstr;
using ::tp::testing::ReadText;
using ::tp::testing::TarBuilder;
using ::tp::testing::TempDir;
using ::tp::testing::WriteText;
namespace fs = std::filesystem;

class SnapshotStoreTest : public ::testing::Test {
 protected:
  SnapshotStore OpenStore(const SnapshotLimits& limits = {}) { return *SnapshotStore::Open(dir_.path(), limits); }
  size_t FilesLeft() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_.At(".snapshots")), fs::directory_iterator()));
  }

  TempDir dir_;
  const std::string tar_ = TarBuilder().File("train.py", "print(1)\n").File("pkg/a.py", "").Bytes();
};

TEST_F(SnapshotStoreTest, KeepsAnUploadUnderItsDigest) {
  const SnapshotStore store = OpenStore();
  SnapshotWriter writer = *store.Begin();
  for (size_t at = 0; at < tar_.size(); at += 700)
    ASSERT_TRUE(writer.Append(std::string_view(tar_).substr(at, 700)).ok());
  const auto info = writer.Commit("");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(IsSnapshotId(info->id));
  EXPECT_EQ(info->files, 2);
  EXPECT_EQ(info->archive_bytes, static_cast<int64_t>(tar_.size()));
  EXPECT_EQ(ReadText(SnapshotPath(dir_.path(), info->id)), tar_);
  EXPECT_TRUE(*store.Has(info->id));

  SnapshotWriter again = *store.Begin();
  ASSERT_TRUE(again.Append(tar_).ok());
  EXPECT_EQ(again.Commit(info->id)->id, info->id);
  EXPECT_EQ(FilesLeft(), 1u);
}

TEST_F(SnapshotStoreTest, DigestIsThatOfSha256sum) {
  Sha256 digest;
  digest.Update("a");
  digest.Update("bc");
  EXPECT_EQ(digest.HexDigest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(SnapshotStoreTest, DamagedOrRefusedUploadsLeaveNothing) {
  const SnapshotStore store = OpenStore();
  {
    SnapshotWriter writer = *store.Begin();
    ASSERT_TRUE(writer.Append(tar_).ok());
    EXPECT_THAT(std::string(Message(writer.Commit(std::string(64, '0')).status())), HasSubstr("damaged"));
  }
  {
    SnapshotWriter writer = *store.Begin();
    ASSERT_TRUE(writer.Append(TarBuilder().File("../x", "").Bytes()).ok());
    EXPECT_EQ(writer.Commit("").status().code(), absl::StatusCode::kInvalidArgument);
  }
  {
    SnapshotWriter abandoned = *store.Begin();
    ASSERT_TRUE(abandoned.Append(tar_).ok());
  }
  EXPECT_EQ(FilesLeft(), 0u);
}

TEST_F(SnapshotStoreTest, AnEndlessUploadIsCutOff) {
  const SnapshotStore store = OpenStore({.max_entries = 1, .max_bytes = 10'000});
  SnapshotWriter writer = *store.Begin();
  absl::Status status;
  int chunks = 0;
  for (; status.ok() && chunks < 100; ++chunks) status = writer.Append(std::string(1000, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(chunks, 20);
}

TEST_F(SnapshotStoreTest, OpeningRemovesInterruptedUploadsOnly) {
  WriteText(dir_.At(".snapshots/.upload.dead"), "half");
  WriteText(dir_.At(".snapshots/kept.tar"), "whole");
  OpenStore();
  EXPECT_EQ(FilesLeft(), 1u);
}

TEST_F(SnapshotStoreTest, AnIdIsNeverAPath) {
  const SnapshotStore store = OpenStore();
  EXPECT_FALSE(*store.Has("../../etc/passwd"));
  EXPECT_FALSE(*store.Has(std::string(63, 'a') + "/"));
  EXPECT_FALSE(*store.Has(std::string(64, 'a')));
}

}  // namespace
}  // namespace tp::launch
