#include <algorithm>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace tp::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class ResultsCommandTest : public CommandTest {
 protected:
  ResultsCommandTest() {
    server_.script().runs = {MakeRun(42, "train", v1::RUN_STATE_SUCCEEDED)};
    server_.script().results = {{"main/report.json", "{\"ok\": true}"}, {"main/plots/loss.txt", "3 2 1"}};
  }
};

TEST_F(ResultsCommandTest, AreListed) {
  const Finished tp = Tp({"results", "42", "-o", "wide"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out,
            "SIZE                  MODIFIED  PATH\n"
            "   5  2026-11-30T08:00:12.000Z  main/plots/loss.txt\n"
            "  12  2026-11-30T08:00:12.000Z  main/report.json\n");
  EXPECT_EQ(Tp({"results", "ls", "42", "-o", "wide"}).out, tp.out);
  EXPECT_EQ(Tp({"results", "42", "-o", "name"}).out, "main/plots/loss.txt\nmain/report.json\n");
  EXPECT_EQ(nlohmann::json::parse(Tp({"results", "42", "-o", "json"}).out)["files"][0]["bytes"], 5);
}

TEST_F(ResultsCommandTest, AreCopiedBelowADirectoryOfTheRun) {
  const Finished tp = Tp({"results", "get", "42"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(tp.out, "train-42-results/main/plots/loss.txt\ntrain-42-results/main/report.json\n");
  EXPECT_EQ(tp.err, "2 file(s) in train-42-results\n");
  EXPECT_EQ(ReadFile(project_ / "train-42-results/main/plots/loss.txt"), "3 2 1");
}

TEST_F(ResultsCommandTest, OneFileToADirectoryOrToStdout) {
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 0);
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "{\"ok\": true}");
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "-"}).out, "{\"ok\": true}");
  EXPECT_EQ(Tp({"results", "get", "42", "--to", "-"}).exit_code, 2);
}

TEST_F(ResultsCommandTest, ARestartOfTheServerRepeatsNothing) {
  server_.script().failures["ReadResult"] = {{grpc::StatusCode::UNAVAILABLE, "going away"}};
  EXPECT_EQ(Tp({"results", "get", "42", "main/plots/loss.txt", "--to", "-"}).out, "3 2 1");
}

TEST_F(ResultsCommandTest, AHostileServerCannotWriteOutsideOfTheDirectory) {
  for (const char* path : {"../evil", "/evil", "a/../../evil", "a//b", "./x", "\x1b[2J"}) {
    server_.script().results = {{path, "x"}};
    const Finished tp = Tp({"results", "get", "42", "--to", "here"});
    EXPECT_EQ(tp.exit_code, 2) << path;
    EXPECT_THAT(tp.err, HasSubstr("a name that cannot be stored safely")) << path;
  }
  EXPECT_EQ(ReadFile(project_ / "evil"), "");
}

TEST_F(ResultsCommandTest, ABrokenCopyGoesOnWhereItWas) {
  auto& failures = server_.script().failures["ReadResult"];
  failures = {grpc::Status::OK, {grpc::StatusCode::DEADLINE_EXCEEDED, "gone"}};
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 3);
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "") << "not under its name before it is whole";
  const Finished tp = Tp({"results", "get", "42", "main/report.json", "--to", "here"});
  EXPECT_EQ(tp.exit_code, 0) << tp.err;
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "{\"ok\": true}");
  EXPECT_THAT(server_.asked().result_offsets, testing::ElementsAre(0, 2));
  EXPECT_THAT(FilesIn(project_ / "here/main"), testing::ElementsAre("report.json"));
}

TEST_F(ResultsCommandTest, AHalfCopyOfAnotherFileIsBegunAgain) {
  auto& failures = server_.script().failures["ReadResult"];
  failures = {grpc::Status::OK, {grpc::StatusCode::DEADLINE_EXCEEDED, "gone"}};
  Tp({"results", "get", "42", "main/report.json", "--to", "here"});
  server_.script().results["main/report.json"] = "other content";
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 0);
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "other content");
  EXPECT_THAT(server_.asked().result_offsets, testing::ElementsAre(0, 2, 0));
  failures = {grpc::Status::OK, {grpc::StatusCode::DEADLINE_EXCEEDED, "gone"}};
  Tp({"results", "get", "42", "main/report.json", "--to", "here"});
  server_.script().results["main/report.json"] = "1";
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 0);
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "1") << "it is shorter by now";
}

TEST_F(ResultsCommandTest, OtherBytesThanTheServersAreRefused) {
  server_.script().digest = std::string(64, 'a');
  const Finished tp = Tp({"results", "get", "42", "main/report.json", "--to", "here"});
  EXPECT_EQ(tp.exit_code, 3);
  EXPECT_THAT(tp.err, HasSubstr("SHA-256 differs"));
  EXPECT_THAT(FilesIn(project_ / "here/main"), testing::IsEmpty());
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "-"}).exit_code, 3);
}

TEST_F(ResultsCommandTest, AnOlderServerIsTakenAtItsWordAndSaidSo) {
  server_.script().sends_digest = false;
  const Finished tp = Tp({"results", "get", "42", "main/report.json", "--to", "here"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_THAT(tp.err, HasSubstr("main/report.json: not checked"));
}

TEST_F(ResultsCommandTest, NothingIsWrittenThroughWhatIsThereAlready) {
  project_.Write("outside", "mine");
  project_.Write("here/main/keep", "");
  project_.Link("here/main/report.json", "../../outside");
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 0);
  EXPECT_EQ(ReadFile(project_ / "outside"), "mine") << "the link is replaced, not followed";
  EXPECT_EQ(ReadFile(project_ / "here/main/report.json"), "{\"ok\": true}");

  // A link, or a second name of another file, where the copy would grow.
  auto& failures = server_.script().failures["ReadResult"];
  failures = {grpc::Status::OK, {grpc::StatusCode::DEADLINE_EXCEEDED, "gone"}};
  Tp({"results", "get", "42", "main/report.json", "--to", "there"});
  const std::string partial = project_ / "there/main/" + FilesIn(project_ / "there/main").at(0);
  ASSERT_EQ(::unlink(partial.c_str()), 0);
  ASSERT_EQ(::link((project_ / "outside").c_str(), partial.c_str()), 0);
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "there"}).exit_code, 2);
  ASSERT_EQ(::unlink(partial.c_str()), 0);
  ASSERT_EQ(::symlink((project_ / "outside").c_str(), partial.c_str()), 0);
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "there"}).exit_code, 2);
  EXPECT_EQ(ReadFile(project_ / "outside"), "mine");
}

TEST_F(ResultsCommandTest, NeverThroughALinkInTheTarget) {
  project_.Write("outside/keep", "");
  project_.Write("here/keep", "");
  project_.Link("here/main", "../outside");
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 2);
  EXPECT_EQ(ReadFile(project_ / "outside/report.json"), "");
}

TEST_F(ResultsCommandTest, AFailedCopyLeavesNothingBehind) {
  server_.script().failures["ReadResult"] = {{grpc::StatusCode::DATA_LOSS, "the disk is gone"}};
  EXPECT_EQ(Tp({"results", "get", "42", "main/report.json", "--to", "here"}).exit_code, 3);
  EXPECT_EQ(Tp({"results", "get", "42", "main/nosuch", "--to", "here"}).exit_code, 4);
  struct stat info {};
  EXPECT_NE(::stat((project_ / "here/main/report.json").c_str(), &info), 0);
  ASSERT_EQ(::stat((project_ / "here/main").c_str(), &info), 0);
  EXPECT_EQ(::rmdir((project_ / "here/main").c_str()), 0) << "a part of a file was left behind";
}

TEST_F(ResultsCommandTest, MetricsAreATable) {
  server_.script().metrics = {R"({"step": 1, "loss": 2.5})", R"({"step": 2, "loss": 2.25})"};
  EXPECT_EQ(Tp({"metrics", "42"}).out,
            "step  loss\n"
            "   1   2.5\n"
            "   2  2.25\n");
  EXPECT_EQ(Tp({"metrics", "42", "--tail", "1"}).out, "step  loss\n   2  2.25\n");
  EXPECT_EQ(nlohmann::json::parse(Tp({"metrics", "42", "-o", "json"}).out)["metrics"][1]["loss"], 2.25);
}

TEST_F(ResultsCommandTest, NoMetricsAreNoError) {
  const Finished tp = Tp({"metrics", "42"});
  EXPECT_EQ(tp.exit_code, 0);
  EXPECT_EQ(tp.out, "");
}

}  // namespace
}  // namespace tp::cli
