#include "server_fixture.h"

#include "auth/digest.h"

namespace tp::api {

absl::StatusOr<ReloadPlan> FakeConfiguration::Plan() {
  if (!fault.ok()) return fault;
  return ReloadPlan{.current = std::make_shared<const core::Registry>(in_force),
                    .candidate = std::make_shared<const core::Registry>(on_disk),
                    .changes = config::Differences(in_force, on_disk),
                    .restart_keys = restart_keys};
}

absl::Status FakeConfiguration::Reload(const HandOver& hand_over) {
  on_disk.version = in_force.version + 1;
  const auto plan = Plan();
  if (plan.ok()) hand_over(*plan);
  return plan.status();
}

void ServerTest::SetUp() {
  auto snapshots = snapshot::Store::Open(storage_.path(), snapshot_limits_, absl::Now);
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  snapshots_ = *std::move(snapshots);
  ServerOptions options;
  options.page_token_key = "test key";
  options.facts = {.version = "1.2.3",
                   .deployment = "test",
                   .epoch = 1,
                   .layout = {.storage_root = storage_.path(), .log_max_bytes = 1 << 20, .heartbeat_ms = 1000},
                   .policy = policy_};
  auto registry = [this] { return std::make_shared<const core::Registry>(registry_); };
  auto server = Server::Start(std::move(options), {.loop = loop_,
                                                   .reader = store_,
                                                   .snapshots = *snapshots_,
                                                   .configuration = configuration_,
                                                   .registry = registry,
                                                   .now = [] { return absl::Now(); },
                                                   .inventory = [this] { return inventory_; }});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
}

void ServerTest::TearDown() { server_.reset(); }

std::unique_ptr<grpc::ClientContext> ServerTest::As(const std::string& user, store::Role role) {
  std::string& token = tokens_[user];
  if (token.empty()) {
    const auth::Token made = auth::MakeToken();
    store::Txn txn = NextTxn();
    txn.tokens.push_back(auth::RowOf(made, {.user = user, .role = role}, absl::Now()));
    CommitTxn(txn);
    token = auth::Text(made);
  }
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata("authorization", "Bearer " + token);
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  return context;
}

void ServerTest::Commit(const core::RunWithSteps& run, const std::string& event) {
  store::Txn txn = NextTxn();
  txn.meta.next_run = std::max(txn.meta.next_run, run.run.n + 1);
  txn.runs.push_back(run.run);
  txn.steps = run.steps;
  store::EventRow row;
  row.revision = ++txn.meta.revision;
  row.at = absl::Now();
  row.run = run.run.n;
  row.event = event;
  row.from = row.to = run.steps[0].state;
  txn.events.push_back(row);
  CommitTxn(txn);
}

void ServerTest::CommitLive(const loop::LiveRun& run, const std::string& event) {
  loop_.SetLive(run);
  Commit(run.run, event);
}

void ServerTest::CommitRequest(const store::RequestRow& row) {
  store::Txn txn = NextTxn();
  txn.requests.push_back(row);
  CommitTxn(txn);
}

void ServerTest::CommitSnapshot(const store::SnapshotRow& row) {
  store::Txn txn = NextTxn();
  txn.snapshots.push_back(row);
  CommitTxn(txn);
}

std::string ServerTest::StoreSnapshot(const std::string& content) {
  const std::string sha256 = auth::Sha256Hex(content);
  const auto bytes = static_cast<int64_t>(content.size());
  const auto upload = snapshots_->BeginUpload("ana");
  EXPECT_TRUE(upload->Begin(sha256, bytes, 0).ok());
  EXPECT_TRUE(upload->Append(content).ok());
  EXPECT_TRUE(upload->Finish().ok());
  const auto manifest = snapshot::Manifest::Make({{.path = "file",
                                                   .kind = snapshot::EntryKind::kFile,
                                                   .executable = false,
                                                   .sha256 = sha256,
                                                   .bytes = bytes,
                                                   .link_target = ""}});
  return snapshots_->Commit("ana", *manifest, {})->id;
}

v1::ErrorDetail ServerTest::DetailOf(const grpc::Status& status) {
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(status.error_details()));
  return detail;
}

store::Txn ServerTest::NextTxn() {
  store::Txn txn;
  txn.meta = *store_.ReadMeta();
  return txn;
}

void ServerTest::CommitTxn(const store::Txn& txn) {
  const absl::Status status = store_.Commit(txn);
  ASSERT_TRUE(status.ok()) << status;
  server_->OnCommit({.revision = txn.meta.revision, .events = txn.events});
}

}  // namespace tp::api
