#include "cli/discovery.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "temp_dir.h"

namespace tp::cli {
namespace {

class DiscoveryTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TP_DATA_DIR", dir_.path().c_str(), 1);
    for (const char* name : {"TP_SERVER", "TP_TOKEN", "TP_TOKEN_FILE"}) ::unsetenv(name);
  }

  void WriteClientFile(std::string_view address = "127.0.0.1:7070", std::string_view token_file = "token") const {
    dir_.Write("client.json", fmt::format(R"({{"address": "{}", "token_file": "{}"}})", address, token_file));
    dir_.Write("token", "tp_secret\n", 0600);
  }

  TempDir dir_;
};

TEST_F(DiscoveryTest, FindsTheServerOfThisMachine) {
  WriteClientFile();
  const auto endpoint = FindServer({.server = "", .context = ""});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->target, "127.0.0.1:7070");
  EXPECT_EQ(endpoint->token, "tp_secret");
  EXPECT_FALSE(endpoint->tls);
}

TEST_F(DiscoveryTest, TheFlagBeatsTheVariable) {
  ::setenv("TP_SERVER", "localhost:1", 1);
  EXPECT_EQ(FindServer({.server = "", .context = ""})->target, "localhost:1");
  EXPECT_EQ(FindServer({.server = "localhost:2", .context = ""})->target, "localhost:2");
}

TEST_F(DiscoveryTest, TheLocalTokenGoesToNoOtherServer) {
  WriteClientFile();
  EXPECT_EQ(FindServer({.server = "127.0.0.1:7070", .context = ""})->token, "tp_secret");
  EXPECT_EQ(FindServer({.server = "127.0.0.1:8080", .context = ""})->token, "");
}

TEST_F(DiscoveryTest, TheVariablesNameTheToken) {
  WriteClientFile();
  dir_.Write("other", "tp_other", 0600);
  ::setenv("TP_TOKEN_FILE", (dir_ / "other").c_str(), 1);
  EXPECT_EQ(FindServer({.server = "", .context = ""})->token, "tp_other");
  ::setenv("TP_TOKEN", "tp_direct", 1);
  EXPECT_EQ(FindServer({.server = "", .context = ""})->token, "tp_direct");
}

TEST_F(DiscoveryTest, RefusesATokenFileThatOthersCanRead) {
  WriteClientFile();
  for (const unsigned mode : {0640U, 0604U, 0620U}) {
    ASSERT_EQ(::chmod((dir_ / "token").c_str(), mode), 0);
    const auto endpoint = FindServer({.server = "", .context = ""});
    EXPECT_TRUE(absl::IsPermissionDenied(endpoint.status())) << mode;
    EXPECT_NE(Message(endpoint.status()).find("chmod 600"), std::string_view::npos);
  }
}

TEST_F(DiscoveryTest, SaysWhatToDoWithoutAServer) {
  const auto endpoint = FindServer({.server = "", .context = ""});
  EXPECT_TRUE(absl::IsUnavailable(endpoint.status()));
  EXPECT_NE(Message(endpoint.status()).find(dir_.path() + "/client.json"), std::string_view::npos);
}

TEST_F(DiscoveryTest, RefusesFilesThatMakeNoSense) {
  for (const char* content : {"", "{", "[]", R"({"address": 7})", R"({"address": ""})"}) {
    dir_.Write("client.json", content);
    EXPECT_TRUE(absl::IsInvalidArgument(FindServer({.server = "", .context = ""}).status())) << content;
  }
  WriteClientFile();
  dir_.Write("token", "two words\n", 0600);
  EXPECT_TRUE(absl::IsInvalidArgument(FindServer({.server = "", .context = ""}).status()));
  dir_.Write("token", std::string(100'000, 'x'), 0600);
  EXPECT_TRUE(absl::IsInvalidArgument(FindServer({.server = "", .context = ""}).status()));
}

TEST_F(DiscoveryTest, DataDirectoryFollowsTheVariable) { EXPECT_EQ(DataDirectory(), dir_.path()); }

TEST(ParseAddressTest, TakesWhatIsSafe) {
  EXPECT_EQ(ParseAddress("unix:/run/tp.sock")->target, "unix:/run/tp.sock");
  EXPECT_EQ(ParseAddress("http://[::1]:80/")->target, "[::1]:80");
  EXPECT_TRUE(ParseAddress("https://tp.example.org:443")->tls);
}

TEST(ParseAddressTest, RefusesTheRest) {
  for (const char* wrong : {"tp.example.org:443", "http://10.0.0.1:80", "127.example.org:80", "localhost",
                            "localhost:", "127.0.0.1:x", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAddress(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace tp::cli
