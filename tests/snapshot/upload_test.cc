#include "snapshot/blob_upload.h"

#include <sys/stat.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "sample.h"

namespace tp::snapshot {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class UploadTest : public StoreTest {
 protected:
  int64_t Received(const std::string& content, const std::string& owner = "ana") {
    const auto missing = store_->FindMissing(owner, {Digest(content)});
    return missing.empty() ? -1 : missing[0].received_bytes;
  }
  bool NothingUnderWay() const { return fs::is_empty(dir_.At(".snapshots/tmp")); }

  // Sends `part` of the content from `offset` on, and breaks off.
  void BreakOff(const std::string& content, size_t size, const std::string& owner = "ana") {
    const auto upload = store_->BeginUpload(owner);
    ASSERT_TRUE(upload->Begin(Digest(content), static_cast<int64_t>(content.size()), 0).ok());
    ASSERT_TRUE(upload->Append(content.substr(0, size)).ok());
  }
};

TEST_F(UploadTest, ManyBlobsInOneStreamAreDurableAtItsEnd) {
  const auto upload = store_->BeginUpload("ana");
  for (int i = 0; i < 600; ++i) {
    const std::string content = fmt::format("content {}", i);
    ASSERT_TRUE(upload->Begin(Digest(content), static_cast<int64_t>(content.size()), 0).ok());
    ASSERT_TRUE(upload->Append(content).ok());
  }
  EXPECT_TRUE(HasBlob("content 0")) << "flushed on the way";
  EXPECT_FALSE(HasBlob("content 599"));
  const auto counts = upload->Finish();
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->blobs, 600);
  EXPECT_TRUE(HasBlob("content 599"));
  EXPECT_TRUE(NothingUnderWay());
}

TEST_F(UploadTest, EmptyAndLargeBlobs) {
  Put({"", std::string(3'000'000, 'x')});
  EXPECT_TRUE(HasBlob(""));
  EXPECT_TRUE(HasBlob(std::string(3'000'000, 'x')));
}

TEST_F(UploadTest, OnlyTheOwnerOfTheServiceReadsBlobs) {
  Put({"one"});
  struct stat about {};
  ASSERT_EQ(stat(dir_.At(".snapshots/blobs/" + Digest("one").substr(0, 2) + "/" + Digest("one")).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(dir_.At(".snapshots").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700u);
}

TEST_F(UploadTest, AnotherDigestIsRefusedAndNothingIsKept) {
  const auto upload = store_->BeginUpload("ana");
  ASSERT_TRUE(upload->Begin(Digest("one"), 3, 0).ok());
  EXPECT_THAT(std::string(Message(upload->Append("two"))), HasSubstr("arrived with the digest"));
  EXPECT_FALSE(HasBlob("one"));
  EXPECT_FALSE(HasBlob("two"));
  EXPECT_TRUE(NothingUnderWay());
}

TEST_F(UploadTest, MoreOrLessThanAnnouncedIsRefused) {
  {
    const auto upload = store_->BeginUpload("ana");
    ASSERT_TRUE(upload->Begin(Digest("one"), 3, 0).ok());
    EXPECT_EQ(upload->Append("onetwo").code(), absl::StatusCode::kInvalidArgument);
  }
  {
    const auto upload = store_->BeginUpload("ana");
    ASSERT_TRUE(upload->Begin(Digest("one"), 3, 0).ok());
    ASSERT_TRUE(upload->Append("on").ok());
    EXPECT_EQ(upload->Begin(Digest("two"), 3, 0).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(upload->Finish().status().code(), absl::StatusCode::kInvalidArgument);
  }
  const auto upload = store_->BeginUpload("ana");
  EXPECT_EQ(upload->Append("data first").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(upload->Begin("../../etc/passwd", 3, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(upload->Begin(Digest("one"), -1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(upload->Begin(Digest("one"), 3, 4).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(NothingUnderWay());
}

TEST_F(UploadTest, ABrokenStreamKeepsWhatIsWholeAndGoesOnInTheMiddle) {
  const std::string content(1'000'000, 'y');
  {
    const auto upload = store_->BeginUpload("ana");
    ASSERT_TRUE(upload->Begin(Digest("one"), 3, 0).ok());
    ASSERT_TRUE(upload->Append("one").ok());
    ASSERT_TRUE(upload->Begin(Digest(content), 1'000'000, 0).ok());
    ASSERT_TRUE(upload->Append(content.substr(0, 600'000)).ok());
  }
  EXPECT_TRUE(HasBlob("one"));
  EXPECT_EQ(Received(content), 600'000);
  EXPECT_EQ(Received(content, "ben"), 0) << "another user's beginning is not trusted";
  Reopen();
  EXPECT_EQ(Received(content), 600'000) << "a restart is no loss";
  const auto upload = store_->BeginUpload("ana");
  ASSERT_TRUE(upload->Begin(Digest(content), 1'000'000, 500'000).ok()) << "any place before that";
  ASSERT_TRUE(upload->Append(content.substr(500'000)).ok());
  EXPECT_EQ(upload->Finish()->bytes, 500'000);
  EXPECT_TRUE(HasBlob(content));
}

TEST_F(UploadTest, AWrongBeginningIsFoundOutAndForgotten) {
  const std::string content = "right beginning, right end";
  BreakOff(content, 10);
  for (const auto& entry : fs::recursive_directory_iterator(dir_.At(".snapshots/partial"))) {
    if (entry.is_regular_file()) tp::testing::WriteText(entry.path(), "wrong begi");
  }
  const auto upload = store_->BeginUpload("ana");
  ASSERT_TRUE(upload->Begin(Digest(content), static_cast<int64_t>(content.size()), 10).ok());
  EXPECT_EQ(upload->Append(content.substr(10)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Received(content), 0);
  Put({content});
  EXPECT_TRUE(HasBlob(content));
}

TEST_F(UploadTest, GoingOnWithWhatIsNotThereSaysSo) {
  const auto upload = store_->BeginUpload("ana");
  EXPECT_EQ(upload->Begin(Digest("one"), 3, 1).code(), absl::StatusCode::kFailedPrecondition);
  BreakOff("one", 1);
  EXPECT_EQ(store_->BeginUpload("ana")->Begin(Digest("one"), 3, 2).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(UploadTest, InterruptedUploadsAreFewAndCollected) {
  for (int i = 0; i < 20; ++i) BreakOff(fmt::format("content {}", i), 3);
  int64_t kept = 0;
  for (int i = 0; i < 20; ++i) kept += Received(fmt::format("content {}", i)) > 0 ? 1 : 0;
  EXPECT_EQ(kept, 8);
  EXPECT_TRUE(NothingUnderWay());
  // Their age is that of their files.
  now_ = absl::Now() + limits_.grace + absl::Hours(1);
  ASSERT_TRUE(store_->Collect({}).ok());
  EXPECT_EQ(Received("content 0"), 0);
}

TEST_F(UploadTest, WhatIsThereAlreadyIsPassedOver) {
  Put({"one"});
  Put({"one"}, "ben");
  EXPECT_TRUE(NothingUnderWay());
  EXPECT_THAT(store_->FindMissing("ana", {Digest("one")}), IsEmpty());
}

TEST_F(UploadTest, TheSameBlobFromTwoAtOnce) {
  const auto first = store_->BeginUpload("ana");
  const auto second = store_->BeginUpload("ben");
  ASSERT_TRUE(first->Begin(Digest("one"), 3, 0).ok());
  ASSERT_TRUE(second->Begin(Digest("one"), 3, 0).ok());
  ASSERT_TRUE(first->Append("one").ok());
  ASSERT_TRUE(second->Append("one").ok());
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_TRUE(second->Finish().ok());
  EXPECT_TRUE(Commit({File("a", "one")}).ok());
}

}  // namespace
}  // namespace tp::snapshot
