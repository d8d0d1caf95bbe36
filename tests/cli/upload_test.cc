// What an upload costs, counted.
#include "cli/upload.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "command_fixture.h"
#include "tp/v1/error.pb.h"

namespace tp::cli {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class UploadTest : public testing::Test {
 protected:
  UploadTest() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    const Endpoint endpoint{.target = server_.address(), .tls = false, .ca_file = "", .token = kTestToken};
    client_ = *Client::Connect(endpoint, absl::Seconds(5));
  }

  void WriteFiles(int count) const {
    for (int i = 0; i < count; ++i) {
      const std::string directory = project_ / fmt::format("dir{}", i / 100);
      if (i % 100 == 0) fs::create_directory(directory);
      std::ofstream(fmt::format("{}/file{}", directory, i), std::ios::binary) << "content " << i;
    }
  }

  // Until the clock of files has left the last change behind: only then an unchanged file can be told.
  void LetItSettle() const {
    const auto stamp_ns = [this] {
      cache_.Write("clock", "");
      struct stat about {};
      EXPECT_EQ(::stat((cache_ / "clock").c_str(), &about), 0);
      return StampOf(about).ctime_ns;
    };
    const int64_t start_ns = stamp_ns();
    while (stamp_ns() - start_ns < 50'000'000) {
    }
  }

  UploadReport Upload() {
    Progress progress(false);
    auto report = UploadDirectory(*client_, project_.path(), progress);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : UploadReport();
  }

  FakeServer server_;
  TempDir cache_;
  TempDir project_;
  std::unique_ptr<Client> client_;
};

TEST_F(UploadTest, TenThousandFilesAgainCostOneStatEach) {
  WriteFiles(10'000);
  LetItSettle();
  const UploadReport first = Upload();
  EXPECT_EQ(first.files_read, 10'000);
  EXPECT_EQ(first.blobs_sent, 10'000);
  EXPECT_EQ(server_.asked().blobs, 10'000);

  const absl::Time start = absl::Now();
  const UploadReport again = Upload();
  const absl::Duration took = absl::Now() - start;
  RecordProperty("again_ms", static_cast<int>(absl::ToInt64Milliseconds(took)));
  EXPECT_EQ(again.snapshot_id, first.snapshot_id);
  EXPECT_EQ(again.stats, 10'000 + 100) << "files and directories";
  EXPECT_EQ(again.files_read, 0);
  EXPECT_EQ(again.blob_bytes_sent, 0);
  EXPECT_EQ(server_.asked().commits, 1);

  std::ofstream(project_ / "dir7/file742", std::ios::binary) << "changed";
  const UploadReport changed = Upload();
  EXPECT_NE(changed.snapshot_id, first.snapshot_id);
  EXPECT_EQ(changed.files_read, 1);
  EXPECT_EQ(changed.blobs_sent, 1);
  EXPECT_EQ(changed.blob_bytes_sent, 7);
}

TEST_F(UploadTest, AChangeThatKeepsSizeAndTimeIsSeen) {
  WriteFiles(10);
  LetItSettle();
  const UploadReport first = Upload();
  struct stat before {};
  ASSERT_EQ(::stat((project_ / "dir0/file3").c_str(), &before), 0);
  std::ofstream(project_ / "dir0/file3", std::ios::binary) << "CONTENT 3";
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (project_ / "dir0/file3").c_str(), times, 0), 0);
  EXPECT_NE(Upload().snapshot_id, first.snapshot_id);
}

// Changed within the same tick of the clock as it was read: its times are the same afterwards.
TEST_F(UploadTest, AFileThatWasJustWrittenIsReadAgain) {
  WriteFiles(10);
  Upload();
  std::ofstream(project_ / "dir0/file3", std::ios::binary) << "CONTENT 3";
  const UploadReport second = Upload();
  EXPECT_EQ(second.blobs_sent, 1);
}

TEST_F(UploadTest, AnInterruptedUploadSendsOnlyTheRest) {
  WriteFiles(2'000);
  server_.script().break_after_blob_bytes = 10'000;
  const UploadReport report = Upload();
  EXPECT_EQ(server_.asked().blobs, 2'000);
  EXPECT_EQ(server_.script().blobs.size(), 2'000u);
  EXPECT_FALSE(report.snapshot_id.empty());
}

TEST_F(UploadTest, WhatIsMissingAtTheCommitIsAskedForAgain) {
  WriteFiles(3);
  v1::ErrorDetail detail;
  detail.set_reason("BLOBS_MISSING");
  server_.script().failures["CommitManifest"] = {
      {grpc::StatusCode::FAILED_PRECONDITION, "the content is not here", detail.SerializeAsString()}};
  Upload();
  EXPECT_EQ(server_.asked().commits, 2);
}

TEST_F(UploadTest, LinksThatLeaveAreRefusedBeforeAnythingIsSent) {
  WriteFiles(1);
  project_.Link("escape", "dir0/../..");
  Progress progress(false);
  const auto report = UploadDirectory(*client_, project_.path(), progress);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(report.status())), HasSubstr("'escape' -> 'dir0/../..' leaves the directory"));
  EXPECT_EQ(server_.asked().blobs, 0);
}

}  // namespace
}  // namespace tp::cli
