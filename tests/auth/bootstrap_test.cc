#include "auth/bootstrap.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "auth/secret_file.h"
#include "auth/token.h"

namespace tp::auth {
namespace {

class Bootstrap : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/tp-bootstrap-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    path_ = directory_ + "/token";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(Bootstrap, WritesAPrivateFileThatProvesTheRow) {
  const auto row = LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->user, "ana");
  EXPECT_EQ(row->role, store::Role::kAdmin);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto token = ParseToken(*ReadSecretFile(path_));
  ASSERT_TRUE(token.ok());
  EXPECT_TRUE(Proves(*token, *row));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1) << "temporary files left";
}

TEST_F(Bootstrap, ASecondStartKeepsTheToken) {
  const auto first = LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch());
  const auto second = LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST_F(Bootstrap, RefusesAFileOpenToOthers) {
  ASSERT_TRUE(LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch()).ok());
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  const auto row = LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Bootstrap, RefusesALink) {
  ASSERT_TRUE(WriteSecretFile(directory_ + "/elsewhere", "x\n").ok());
  ASSERT_EQ(symlink((directory_ + "/elsewhere").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch()).ok());
}

TEST_F(Bootstrap, RefusesAFileThatHoldsNoToken) {
  ASSERT_TRUE(WriteSecretFile(path_, "hello\n").ok());
  const auto row = LoadOrCreateBootstrapToken(path_, "ana", absl::UnixEpoch());
  EXPECT_EQ(row.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Bootstrap, RefusesAUserNameThatIsNoPathComponent) {
  EXPECT_FALSE(LoadOrCreateBootstrapToken(path_, "../ana", absl::UnixEpoch()).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Bootstrap, KeyIsCreatedOnce) {
  const auto first = LoadOrCreateKey(directory_ + "/key", 32);
  const auto second = LoadOrCreateKey(directory_ + "/key", 32);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->size(), 64u);
  EXPECT_EQ(*first, *second);
}

TEST_F(Bootstrap, TornKeyIsReplaced) {
  ASSERT_TRUE(WriteSecretFile(directory_ + "/key", "abc").ok());
  const auto key = LoadOrCreateKey(directory_ + "/key", 32);
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->size(), 64u);
}

}  // namespace
}  // namespace tp::auth
