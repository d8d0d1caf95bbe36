// A whole tpd: configuration, store, backends, loop and API, put together and taken apart in order.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/loop_port.h"
#include "api/server.h"
#include "backends/driver/driver.h"
#include "core/reconcile.h"
#include "loop/loop.h"
#include "loop/loop_thread.h"
#include "notify/notifier.h"
#include "snapshot/collector.h"
#include "store/open.h"
#include "tpd/backends.h"
#include "tpd/checkpoint_scan.h"
#include "tpd/config_watcher.h"
#include "tpd/configuration.h"
#include "tpd/engine_watch.h"
#include "tpd/storage_scan.h"

namespace tp::tpd {

struct DaemonOptions {
  std::string data_directory;    // exists, absolute
  std::string config_directory;  // empty: the built-in files
  std::string rank_binary;
  std::string version;
  // Snapshots that no run needs go after this long instead of hours; for crash tests.
  std::optional<absl::Duration> collect_after;
  // Readiness fails once the loop has had work for so long and done none of it.
  absl::Duration not_serving_after = absl::Seconds(10);
};

// Used by one thread.
class Daemon {
 public:
  // Serving when it returns OK; the sentence says what has to be mended.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(DaemonOptions options);

  // Answers what is open, commits what was decided; jobs go on.
  ~Daemon();

  // Reads the configuration again and logs what comes of it. The registry comes into force, the rest needs
  // a restart. A fault leaves everything as it was. Thread-safe.
  void Reload();

  // To be called about once a second: health follows the loop.
  void CheckHealth();

  const std::string& address() const { return server_->address(); }

 private:
  explicit Daemon(DaemonOptions options) : options_(std::move(options)) {}

  absl::Status LoadConfiguration();
  absl::Status OpenStores();
  absl::Status OpenSnapshots();
  absl::Status EnterBootstrapToken();
  absl::Status StartBackends();
  absl::Status ReportStrangers();
  absl::StatusOr<std::vector<core::SeenObject>> TakeInventory() const;
  void CrossCheckCards() const;
  void StartNotifier();
  absl::StatusOr<std::vector<notify::ReceiverStatus>> Receivers() const;
  void WakeNotifier(const loop::CommitNotice& notice) const;
  absl::Status StartLoop();
  absl::Status StartServer();
  absl::Status StartScanning();
  void StartCheckpointScan();
  void StartEngineWatch();
  std::vector<NodeSight> NodeSights() const;
  void StartWatching();
  loop::ThreadHooks MakeHooks();
  core::LaunchLayout Layout() const;
  const config::ServerConfig& config() const { return configuration_->server(); }
  std::string TokenFile() const { return options_.data_directory + "/token"; }

  // What the API posts goes to the loop's thread.
  class Port final : public api::LoopPort {
   public:
    explicit Port(loop::LoopThread& thread) : thread_(thread) {}
    void Post(loop::Command command, loop::Reply reply) override { thread_.Post(std::move(command), std::move(reply)); }
    void Post(std::vector<loop::Command> commands, loop::BulkReply reply) override {
      thread_.Post(std::move(commands), std::move(reply));
    }
    void Post(loop::DryRun dry_run, loop::Reply reply) override { thread_.Post(std::move(dry_run), std::move(reply)); }
    void Post(loop::Query query, loop::QueryReply reply) override { thread_.Post(std::move(query), std::move(reply)); }
    void Post(loop::StandingQuery query, loop::StandingReply reply) override {
      thread_.Post(std::move(query), std::move(reply));
    }
    void Post(loop::ForecastQuery query, loop::ForecastReply reply) override {
      thread_.Post(std::move(query), std::move(reply));
    }
    void Post(loop::NodesQuery query, loop::NodesReply reply) override { thread_.Post(query, std::move(reply)); }
    void Post(loop::WhatIfQuery query, loop::WhatIfReply reply) override {
      thread_.Post(std::move(query), std::move(reply));
    }

   private:
    loop::LoopThread& thread_;
  };

  const DaemonOptions options_;
  std::unique_ptr<Configuration> configuration_;
  std::string storage_root_;
  store::OpenedStore store_;
  store::Loaded loaded_;
  std::set<std::string> measured_owners_;  // before this start
  std::unique_ptr<snapshot::Store> snapshots_;
  std::unique_ptr<snapshot::Collector> collector_;
  Backends backends_;
  std::unique_ptr<driver::Driver> driver_;
  std::unique_ptr<notify::Notifier> notifier_;  // null: its file cannot be used
  std::unique_ptr<loop::Loop> loop_;
  std::unique_ptr<loop::LoopThread> loop_thread_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<StorageScan> storage_scan_;
  std::unique_ptr<CheckpointScan> checkpoint_scan_;
  std::unique_ptr<ConfigWatcher> watcher_;
  std::unique_ptr<EngineWatch> engine_watch_;
  std::atomic<bool> watch_started_ = false;  // engine_watch_ is there: its first round begins by itself
};

}  // namespace tp::tpd
