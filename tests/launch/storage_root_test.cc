#include "launch/storage_root.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/temp_dir.h"

namespace tp::launch {
namespace {

using ::testing::HasSubstr;

TEST(StorageRoot, IsTheDirectoryItWasAndNoOther) {
  const tp::testing::TempDir dir;
  std::filesystem::create_directories(dir.At("storage"));
  const absl::StatusOr<StorageRoot> root = StorageRoot::Open(dir.At("storage") + "//");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->path(), dir.At("storage"));
  EXPECT_TRUE(root->Check().ok());

  std::filesystem::rename(dir.At("storage"), dir.At("away"));
  EXPECT_EQ(root->Check().code(), absl::StatusCode::kUnavailable) << "nothing is there";
  std::filesystem::create_directories(dir.At("storage"));
  EXPECT_THAT(std::string(root->Check().message()), HasSubstr("is its filesystem mounted?"));
  std::filesystem::remove(dir.At("storage"));
  std::filesystem::rename(dir.At("away"), dir.At("storage"));
  EXPECT_TRUE(root->Check().ok());
}

TEST(StorageRoot, IsAnAbsolutePathOfADirectory) {
  EXPECT_EQ(StorageRoot::Open("runs").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(StorageRoot::Open("/no/such/directory").ok());
  EXPECT_FALSE(StorageRoot::Open("/dev/null").ok());
}

}  // namespace
}  // namespace tp::launch
