// A real server on a loopback port over the in-memory store and a fake loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/server.h"
#include "auth/token.h"
#include "fake_loop.h"
#include "sample_runs.h"
#include "snapshot/store.h"
#include "store/memory_store.h"
#include "temp_dir.h"
#include "tp/v1/error.pb.h"

namespace tp::api {

// Files that say what a test wants them to.
class FakeConfiguration final : public ConfigurationPort {
 public:
  absl::StatusOr<ReloadPlan> Plan() override;
  absl::Status Reload(const HandOver& hand_over) override;
  RegistryStatus Status() override { return status; }

  core::Registry in_force;
  core::Registry on_disk;
  absl::Status fault;  // what reading the files says
  std::vector<std::string> restart_keys;
  RegistryStatus status;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Adds the user's token to the store on first use.
  std::unique_ptr<grpc::ClientContext> As(const std::string& user, store::Role role = store::Role::kUser);

  // Stores the run as it is now, with an event, and tells the server.
  void Commit(const core::RunWithSteps& run, const std::string& event = "test");
  // The same and the loop has it.
  void CommitLive(const loop::LiveRun& run, const std::string& event = "test");
  void CommitRequest(const store::RequestRow& row);
  void CommitSnapshot(const store::SnapshotRow& row);
  // Of one file; its id.
  std::string StoreSnapshot(const std::string& content);

  std::shared_ptr<grpc::Channel> channel() const { return channel_; }

  static v1::ErrorDetail DetailOf(const grpc::Status& status);

  TempDir storage_;
  store::MemoryStore store_;
  FakeLoop loop_;
  snapshot::Limits snapshot_limits_;  // to be set before SetUp
  core::Policy policy_;               // to be set before SetUp
  std::unique_ptr<snapshot::Store> snapshots_;
  FakeConfiguration configuration_;
  core::Registry registry_;
  absl::StatusOr<std::vector<core::SeenObject>> inventory_ = std::vector<core::SeenObject>();
  std::unique_ptr<Server> server_;

 private:
  store::Txn NextTxn();
  void CommitTxn(const store::Txn& txn);

  std::map<std::string, std::string> tokens_;  // by user
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tp::api
