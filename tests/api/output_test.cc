// Logs, results and metrics over the wire.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/digest.h"
#include "server_fixture.h"
#include "tp/v1/log.grpc.pb.h"
#include "tp/v1/run.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;

class OutputTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    runs_ = v1::RunService::NewStub(channel());
    logs_ = v1::LogService::NewStub(channel());
    As("ana");
  }

  struct LogResult {
    std::string data;
    grpc::Status status;
  };
  LogResult ReadLog(const v1::ReadLogRequest& request, const std::string& user = "ana") {
    const auto context = As(user);
    const auto reader = logs_->ReadLog(context.get(), request);
    LogResult result;
    v1::ReadLogResponse response;
    while (reader->Read(&response)) {
      EXPECT_EQ(response.offset(), static_cast<int64_t>(result.data.size()));
      result.data += response.data();
    }
    result.status = reader->Finish();
    return result;
  }

  static v1::ReadLogRequest LogOf(const std::string& run) {
    v1::ReadLogRequest request;
    request.set_run(run);
    request.set_tail_lines(-1);
    return request;
  }

  const std::string log_ = "ana/train-1/attempts/main-1/0-0.log";
  std::unique_ptr<v1::RunService::Stub> runs_;
  std::unique_ptr<v1::LogService::Stub> logs_;
};

TEST_F(OutputTest, TenMegabytesWithoutANewlineComeWhole) {
  std::string content;
  for (int i = 0; content.size() < 10'000'000; ++i) content += std::to_string(i) + "\r";
  storage_.Write(log_, content);
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
  const LogResult log = ReadLog(LogOf("1"));
  EXPECT_TRUE(log.status.ok()) << log.status.error_message();
  EXPECT_TRUE(log.data == content) << log.data.size();
}

TEST_F(OutputTest, AFollowEndsByItselfAfterTheLastByte) {
  storage_.Write(log_, "one\n");
  Commit(RunningRun(1, "ana"));
  v1::ReadLogRequest request = LogOf("1");
  request.set_follow(true);
  const auto context = As("ana");
  const auto reader = logs_->ReadLog(context.get(), request);
  v1::ReadLogResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.data(), "one\n");
  EXPECT_EQ(response.rank(), "0-0");
  EXPECT_EQ(response.step(), 1);
  EXPECT_EQ(response.attempt(), 1);
  storage_.Append(log_, "two\n");
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.data(), "two\n");
  storage_.Append(log_, "three\n");
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.data(), "three\n");
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(OutputTest, WhatAJobWroteIsForItsOwnerAndOperators) {
  storage_.Write(log_, "secret");
  storage_.Write("ana/train-1/results/main/r.txt", "secret");
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
  EXPECT_EQ(ReadLog(LogOf("1"), "bob").status.error_code(), StatusCode::PERMISSION_DENIED);
  v1::ListResultsRequest list;
  list.set_run("1");
  v1::ListResultsResponse files;
  EXPECT_EQ(runs_->ListResults(As("bob").get(), list, &files).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(runs_->ListResults(As("olga", store::Role::kOperator).get(), list, &files).ok());
  v1::ReadMetricsRequest metrics;
  metrics.set_run("1");
  v1::ReadMetricsResponse lines;
  EXPECT_EQ(runs_->ReadMetrics(As("bob").get(), metrics, &lines).error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(OutputTest, NoLogYetSaysSo) {
  CommitLive({.run = QueuedRun(1, "ana"), .gates = {{}}, .shapes = {{}}});
  const LogResult log = ReadLog(LogOf("1"));
  EXPECT_EQ(log.status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(log.status).reason(), "NO_LOG_YET");
}

TEST_F(OutputTest, ResultsAreListedAndRead) {
  const std::string big(1'000'000, 'm');
  storage_.Write("ana/train-1/results/main/model.pt", big);
  storage_.Write("ana/train-1/results/main/plots/loss.svg", "<svg/>");
  ASSERT_EQ(symlink("/etc/passwd", storage_.At("ana/train-1/results/main/link").c_str()), 0);
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
  v1::ListResultsRequest list;
  list.set_run("@last");
  v1::ListResultsResponse files;
  ASSERT_TRUE(runs_->ListResults(As("ana").get(), list, &files).ok());
  ASSERT_EQ(files.files_size(), 2);
  EXPECT_EQ(files.files(0).path(), "main/model.pt");
  EXPECT_EQ(files.files(0).bytes(), 1'000'000);
  EXPECT_EQ(files.files(1).path(), "main/plots/loss.svg");

  std::string sha256;
  const auto read = [&](const std::string& path, int64_t offset, std::string* data) {
    v1::ReadResultRequest request;
    request.set_run("1");
    request.set_path(path);
    request.set_offset(offset);
    const auto context = As("ana");
    const auto reader = runs_->ReadResult(context.get(), request);
    v1::ReadResultResponse response;
    sha256.clear();
    while (reader->Read(&response)) {
      EXPECT_EQ(sha256, "") << "the digest comes last";
      *data += response.data();
      sha256 = response.sha256();
    }
    return reader->Finish().error_code();
  };
  std::string data;
  EXPECT_EQ(read("main/model.pt", 0, &data), StatusCode::OK);
  EXPECT_TRUE(data == big);
  const std::string whole = sha256;
  EXPECT_EQ(whole, auth::Sha256Hex(big));
  data.clear();
  EXPECT_EQ(read("main/model.pt", 999'990, &data), StatusCode::OK);
  EXPECT_TRUE(data == big.substr(999'990));
  EXPECT_EQ(sha256, whole) << "of the whole file, wherever one goes on";
  data.clear();
  EXPECT_EQ(read("main/model.pt", 1'000'000, &data), StatusCode::OK);
  EXPECT_EQ(sha256, whole);
  EXPECT_EQ(read("main/model.pt", 1'000'001, &data), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(data, "");
  EXPECT_EQ(read("main/plots/loss.svg", 1, &data), StatusCode::OK);
  EXPECT_EQ(data, "svg/>");
  EXPECT_EQ(read("main/nothing", 0, &data), StatusCode::NOT_FOUND);
  EXPECT_EQ(read("main/link", 0, &data), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(read("../attempts/main-1/spec.json", 0, &data), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(read("", 0, &data), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(read("main/model.pt", -1, &data), StatusCode::INVALID_ARGUMENT);
}

TEST_F(OutputTest, ARunWithoutResultsHasNone) {
  Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kFailed));
  v1::ListResultsRequest list;
  list.set_run("1");
  v1::ListResultsResponse files;
  EXPECT_TRUE(runs_->ListResults(As("ana").get(), list, &files).ok());
  EXPECT_EQ(files.files_size(), 0);
}

TEST_F(OutputTest, MetricsOfAllAttempts) {
  storage_.Write("ana/train-1/attempts/main-1/metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n");
  storage_.Write("ana/train-1/attempts/main-3/metrics.jsonl", "{\"step\":2,\"again\":1}\n");
  core::RunWithSteps run = EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded);
  run.steps[0].attempts = 3;
  Commit(run);
  v1::ReadMetricsRequest request;
  request.set_run("1");
  v1::ReadMetricsResponse response;
  ASSERT_TRUE(runs_->ReadMetrics(As("ana").get(), request, &response).ok());
  EXPECT_THAT(response.lines(), ElementsAre("{\"step\":1}", "{\"step\":2,\"again\":1}"));
  EXPECT_FALSE(response.truncated());
  request.set_step(2);
  EXPECT_EQ(runs_->ReadMetrics(As("ana").get(), request, &response).error_code(), StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace tp::api
