#include "api/job_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_dir.h"

namespace tp::api {
namespace {

using testing::ElementsAre;

class JobFiles : public testing::Test {
 protected:
  Directory Root() const { return *OpenDirectory(dir_.path()); }
  TempDir dir_;
};

std::vector<std::string> Paths(const std::vector<FileEntry>& files) {
  std::vector<std::string> paths;
  for (const FileEntry& file : files) paths.push_back(file.path);
  return paths;
}

TEST_F(JobFiles, OpensBeneathTheRoot) {
  dir_.Write("a/b/c.txt", "hello");
  const Directory root = Root();
  const auto file = OpenFileBeneath(root, "a/b/c.txt");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ReadAt(file->get(), 1, 3, "c"), "ell");
  EXPECT_EQ(*ReadAt(file->get(), 5, 3, "c"), "");
  EXPECT_EQ(*SizeOf(file->get(), "c"), 5);
  EXPECT_TRUE(OpenDirectoryBeneath(dir_.path(), "a/b").ok());
}

TEST_F(JobFiles, NoPathLeadsOut) {
  dir_.Write("inside/file", "x");
  dir_.Write("inside/a/b", "x");
  const Directory root = *OpenDirectoryBeneath(dir_.path(), "inside");
  for (const std::string& path :
       {std::string(".."), std::string("../inside/file"), std::string("/etc/passwd"), std::string("./file"),
        std::string("a//b"), std::string("file/"), std::string(), std::string("file\0x", 6), std::string("/")}) {
    const auto file = OpenFileBeneath(root, path);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << path << ": " << file.status();
  }
}

TEST_F(JobFiles, LinksAreNotFollowed) {
  dir_.Write("secret/file", "x");
  dir_.Write("run/real/file", "y");
  ASSERT_EQ(symlink("../secret/file", dir_.At("run/link").c_str()), 0);
  ASSERT_EQ(symlink("../secret", dir_.At("run/folder").c_str()), 0);
  const Directory root = *OpenDirectoryBeneath(dir_.path(), "run");
  EXPECT_EQ(OpenFileBeneath(root, "link").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenFileBeneath(root, "folder/file").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenDirectoryBeneath(dir_.path(), "run/folder").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Paths(*ListFilesBeneath(root, 100)), ElementsAre("real/file"));
}

TEST_F(JobFiles, PipesAndFoldersAreNoFilesAndDoNotHang) {
  ASSERT_EQ(mkfifo(dir_.At("pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(dir_.At("folder").c_str(), 0700), 0);
  EXPECT_EQ(OpenFileBeneath(Root(), "pipe").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenFileBeneath(Root(), "folder").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ListFilesBeneath(Root(), 100)->empty());
}

TEST_F(JobFiles, MissingIsNotFound) {
  EXPECT_EQ(OpenFileBeneath(Root(), "a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenFileBeneath(Root(), "a/b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenDirectoryBeneath(dir_.path(), "a").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobFiles, ListsByPathWithSizes) {
  dir_.Write("b", "22");
  dir_.Write("a/z", "1");
  dir_.Write("a/b/c", "");
  const auto files = ListFilesBeneath(Root(), 100);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(Paths(*files), ElementsAre("a/b/c", "a/z", "b"));
  EXPECT_EQ((*files)[2].bytes, 2);
  EXPECT_GT((*files)[2].modified_at, absl::UnixEpoch());
}

TEST_F(JobFiles, TooManyAndTooDeepAreRefused) {
  for (int i = 0; i < 5; ++i) dir_.Write("many/" + std::to_string(i), "");
  EXPECT_EQ(ListFilesBeneath(Root(), 5).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ListFilesBeneath(Root(), 6).ok());
  std::string deep = "deep";
  for (int i = 0; i < 70; ++i) deep += "/d";
  std::filesystem::create_directories(dir_.At(deep));
  EXPECT_EQ(ListFilesBeneath(Root(), 1000).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tp::api
