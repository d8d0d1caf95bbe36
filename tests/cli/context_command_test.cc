#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::HasSubstr;

class ContextCommandTest : public CommandTest {
 protected:
  ContextCommandTest() {
    options_.environment["TP_DATA_DIR"] = "/nonexistent";
    project_.Write("token", kTestToken, 0600);
  }

  Finished Add(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"context",         "add", name, "--server", server_.address(), "--token-file",
                                          project_ / "token"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Tp(arguments);
  }
  std::string config() const { return project_ / ".config/tp/config.json"; }
};

TEST_F(ContextCommandTest, TheFirstIsInUse) {
  const Finished added = Add("lab");
  EXPECT_EQ(added.exit_code, 0) << added.err;
  EXPECT_EQ(added.out, "lab\n");
  EXPECT_EQ(Tp({"whoami", "-o", "name"}).out, "alice\n");
  struct stat info {};
  ASSERT_EQ(::stat(config().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(ContextCommandTest, OneIsUsedByNameByVariableOrFromNowOn) {
  Add("dead", {"--server", "unix:" + (project_ / "nobody.sock")});
  Tp({"context", "add", "dead", "--server", "127.0.0.1:1", "--use"});
  Add("lab");
  EXPECT_EQ(Tp({"--context", "lab", "whoami"}).exit_code, 0);
  options_.environment["TP_CONTEXT"] = "lab";
  EXPECT_EQ(Tp({"whoami"}).exit_code, 0);
  options_.environment.erase("TP_CONTEXT");
  EXPECT_EQ(Tp({"context", "use", "lab"}).out, "lab\n");
  EXPECT_EQ(Tp({"whoami"}).exit_code, 0);
  const auto document = nlohmann::json::parse(Tp({"context", "ls", "-o", "json"}).out);
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["current"], "lab");
  EXPECT_EQ(document["contexts"].size(), 2U);
  EXPECT_EQ(Tp({"context", "ls", "-o", "name"}).out, "dead\nlab\n");
}

TEST_F(ContextCommandTest, AServerThatIsNamedWins) {
  Tp({"context", "add", "dead", "--server", "127.0.0.1:1", "--use"});
  options_.environment["TP_TOKEN"] = kTestToken;
  EXPECT_EQ(Tp({"--server", server_.address(), "whoami"}).exit_code, 0);
  options_.environment["TP_SERVER"] = server_.address();
  EXPECT_EQ(Tp({"whoami"}).exit_code, 0);
  EXPECT_EQ(Tp({"--server", "x:1", "--context", "dead", "whoami"}).exit_code, 2);
}

TEST_F(ContextCommandTest, ATokenFromStdinIsKeptForTheOwnerAlone) {
  options_.input = std::string(kTestToken) + "\n";
  const Finished added = Tp({"context", "add", "lab", "--server", server_.address(), "--token-stdin"});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  struct stat info {};
  ASSERT_EQ(::stat((project_ / ".config/tp/tokens/lab").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(Tp({"whoami"}).exit_code, 0);
  options_.input = "no token here\n";
  EXPECT_EQ(Tp({"context", "add", "bad", "--server", server_.address(), "--token-stdin"}).exit_code, 2);
}

TEST_F(ContextCommandTest, ATokenFileOpenToOthersIsRefused) {
  ASSERT_EQ(::chmod((project_ / "token").c_str(), 0644), 0);
  const Finished tp = Add("lab");
  EXPECT_EQ(tp.exit_code, 5);
  EXPECT_THAT(tp.err, HasSubstr("is open to others (mode 0644)"));
}

TEST_F(ContextCommandTest, UnknownOnesGetASuggestion) {
  Add("lab");
  const Finished tp = Tp({"--context", "lba", "whoami"});
  EXPECT_EQ(tp.exit_code, 4);
  EXPECT_EQ(tp.err, "tp: there is no context lba; did you mean lab?\n");
  EXPECT_EQ(Tp({"context", "use", "elsewhere"}).exit_code, 4);
  EXPECT_EQ(Tp({"context", "add", "../x", "--server", "127.0.0.1:1"}).exit_code, 2);
  EXPECT_EQ(Tp({"context", "add", "x", "--server", "example.org:1"}).exit_code, 2) << "the token would go in clear";
}

TEST_F(ContextCommandTest, RemovedIsForgotten) {
  Add("lab");
  EXPECT_EQ(Tp({"context", "rm", "lab"}).exit_code, 0);
  EXPECT_EQ(Tp({"context", "ls", "-o", "name"}).out, "");
  EXPECT_EQ(Tp({"whoami"}).exit_code, 3) << "the tpd of this machine, which there is not";
}

TEST_F(ContextCommandTest, ADamagedFileIsNamed) {
  project_.Write(".config/tp/config.json", "{");
  const Finished tp = Tp({"whoami"});
  EXPECT_EQ(tp.exit_code, 2);
  EXPECT_THAT(tp.err, HasSubstr(".config/tp/config.json: not a JSON object; correct it, or remove it"));
  options_.environment["TP_CONFIG"] = project_ / "other.json";
  EXPECT_EQ(Tp({"context", "ls"}).exit_code, 0);
}

}  // namespace
}  // namespace tp::cli
