// Registry, usage, system, health.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_registry.h"
#include "server_fixture.h"
#include "store/chain.h"
#include "tp/v1/registry.grpc.pb.h"
#include "tp/v1/system.grpc.pb.h"
#include "tp/v1/usage.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;

class ServicesTest : public ServerTest {};

TEST_F(ServicesTest, SeriesWithTheCardsThatAreFree) {
  registry_ = SampleRegistry();
  Commit(RunningRun(1, "ana"));
  Commit(EndedRun(RunningRun(2, "ana"), core::JobState::kSucceeded));
  const auto stub = v1::RegistryService::NewStub(channel());
  v1::ListSeriesResponse response;
  ASSERT_TRUE(stub->ListSeries(As("ana").get(), {}, &response).ok());
  EXPECT_EQ(response.registry_version(), 3);
  ASSERT_EQ(response.series_size(), 1);
  EXPECT_EQ(response.series(0).name(), "h200");
  EXPECT_EQ(response.series(0).total_cards(), 24);
  EXPECT_EQ(response.series(0).free_cards(), 8);
  EXPECT_EQ(response.series(0).backend(), "local");
}

TEST_F(ServicesTest, ProfilesWithTheirShape) {
  registry_ = SampleRegistry();
  const auto stub = v1::RegistryService::NewStub(channel());
  v1::ListProfilesResponse response;
  ASSERT_TRUE(stub->ListProfiles(As("ana").get(), {}, &response).ok());
  ASSERT_EQ(response.profiles_size(), 1);
  EXPECT_EQ(response.profiles(0).default_shape(), "h200:16 = 2 nodes x 8");
}

class UsageTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::UsageService::NewStub(channel());
    Commit(EndedRun(RunningRun(1, "ana"), core::JobState::kSucceeded));
    Commit(EndedRun(RunningRun(2, "bob"), core::JobState::kSucceeded));
    Bill(1, "ana", 1000);
    Bill(1, "ana", 500);
    Bill(2, "bob", 250);
  }

  void Bill(int64_t run, const std::string& owner, int64_t ms) {
    store::Txn txn;
    txn.meta = *store_.ReadMeta();
    core::LedgerRow row;
    row.seq = ++txn.meta.ledger_seq;
    row.run = run;
    row.attempt = static_cast<int32_t>(row.seq);
    row.series = row.profile = "h200";
    row.owner = owner;
    row.project = "default";
    row.month = "2023-11";
    row.cards = 16;
    row.start_unix_ms = 1'700'000'000'000;
    row.end_unix_ms = row.start_unix_ms + ms;
    row.gpu_ms = ms * row.cards;
    row.evidence = "end records";
    row.previous_hash = txn.meta.ledger_hash;
    row.hash = store::HashOf(row);
    txn.meta.ledger_hash = row.hash;
    txn.ledger.push_back(row);
    const absl::Status status = store_.Commit(txn);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::unique_ptr<v1::UsageService::Stub> stub_;
};

TEST_F(UsageTest, OnesOwnByDefaultEveryoneOnRequest) {
  v1::QueryUsageRequest request;
  request.set_by(v1::USAGE_KEY_USER);
  v1::QueryUsageResponse response;
  ASSERT_TRUE(stub_->QueryUsage(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.rows_size(), 1);
  EXPECT_EQ(response.rows(0).key(), "ana");
  EXPECT_EQ(response.rows(0).gpu_ms(), 24'000);
  request.set_owner("*");
  ASSERT_TRUE(stub_->QueryUsage(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.rows_size(), 2);
}

TEST_F(UsageTest, OfOneRun) {
  v1::QueryUsageRequest request;
  request.set_by(v1::USAGE_KEY_RUN);
  request.set_run("train-2");
  v1::QueryUsageResponse response;
  ASSERT_TRUE(stub_->QueryUsage(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.rows_size(), 1);
  EXPECT_EQ(response.rows(0).gpu_ms(), 4'000);
  EXPECT_EQ(response.rows(0).key(), "train-2") << "runs are called by their ids";
  request.set_run("train-99");
  EXPECT_EQ(stub_->QueryUsage(As("ana").get(), request, &response).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(UsageTest, RefusesWhatMakesNoSense) {
  v1::QueryUsageRequest request;
  v1::QueryUsageResponse response;
  EXPECT_EQ(DetailOf(stub_->QueryUsage(As("ana").get(), request, &response)).field(), "by");
  request.set_by(v1::USAGE_KEY_DAY);
  request.mutable_from()->set_seconds(10);
  request.mutable_to()->set_seconds(10);
  EXPECT_EQ(DetailOf(stub_->QueryUsage(As("ana").get(), request, &response)).field(), "to");
}

TEST_F(UsageTest, IntervalsOfATimeAndAProject) {
  v1::ListIntervalsRequest request;
  request.set_owner("*");
  v1::ListIntervalsResponse response;
  request.mutable_from()->set_seconds(1'700'000'000);
  request.mutable_from()->set_nanos(600'000'000);
  ASSERT_TRUE(stub_->ListIntervals(As("ana").get(), request, &response).ok());
  ASSERT_EQ(response.intervals_size(), 1) << "the one that lasts beyond it";
  EXPECT_EQ(response.intervals(0).gpu_ms(), 16'000);
  EXPECT_EQ(response.intervals(0).month(), "2023-11");
  EXPECT_EQ(response.intervals(0).hash().size(), 64U);
  request.set_project("other");
  ASSERT_TRUE(stub_->ListIntervals(As("ana").get(), request, &response).ok());
  EXPECT_EQ(response.intervals_size(), 0);
  *request.mutable_to() = request.from();
  EXPECT_EQ(DetailOf(stub_->ListIntervals(As("ana").get(), request, &response)).field(), "to");
}

TEST_F(UsageTest, IntervalsInPages) {
  v1::ListIntervalsRequest request;
  request.set_owner("*");
  request.set_page_size(2);
  std::vector<std::string> seen;
  do {
    v1::ListIntervalsResponse response;
    ASSERT_TRUE(stub_->ListIntervals(As("ana").get(), request, &response).ok());
    for (const v1::Interval& interval : response.intervals()) {
      seen.push_back(interval.run() + "/" + std::to_string(interval.gpu_ms()));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(seen, testing::ElementsAre("train-1/16000", "train-1/8000", "train-2/4000"));
}

TEST_F(ServicesTest, ServerInfo) {
  registry_.version = 5;
  Commit(QueuedRun(1, "ana"));
  const auto stub = v1::SystemService::NewStub(channel());
  v1::GetServerInfoResponse response;
  ASSERT_TRUE(stub->GetServerInfo(As("ana").get(), {}, &response).ok());
  EXPECT_EQ(response.version(), "1.2.3");
  EXPECT_EQ(response.deployment(), "test");
  EXPECT_EQ(response.epoch(), 1);
  EXPECT_EQ(response.revision(), 1);
  EXPECT_EQ(response.registry_version(), 5);
}

TEST_F(ServicesTest, ThePortCannotBeListenedOnTwice) {
  const std::string& address = server_->address();
  ServerOptions options;
  options.port = std::stoi(address.substr(address.rfind(':') + 1));
  const auto second = Server::Start(std::move(options), {.loop = loop_,
                                                         .reader = store_,
                                                         .snapshots = *snapshots_,
                                                         .configuration = configuration_,
                                                         .registry = [] { return nullptr; },
                                                         .now = [] { return absl::Now(); }});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tp::api
