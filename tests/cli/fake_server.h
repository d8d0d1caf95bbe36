// A tpd of a test: scripted answers over the real API, and a record of what was asked. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/server.h>

#include "snapshot/manifest.h"
#include "tp/v1/log.grpc.pb.h"
#include "tp/v1/node.grpc.pb.h"
#include "tp/v1/quota.grpc.pb.h"
#include "tp/v1/registry.grpc.pb.h"
#include "tp/v1/run.grpc.pb.h"
#include "tp/v1/snapshot.grpc.pb.h"
#include "tp/v1/system.grpc.pb.h"
#include "tp/v1/usage.grpc.pb.h"
#include "tp/v1/window.grpc.pb.h"

namespace tp::cli {

inline constexpr const char* kTestToken = "tp_0123456789abcdef_test";

// What the server knows and does. Set before the call it is for.
struct Script {
  std::vector<v1::Run> runs;         // newest first
  std::vector<std::string> notes;    // of a submission
  std::string steer_note;            // of stop, pause, resume, retry
  std::vector<v1::Run> watch;        // what WatchRun sends
  std::vector<v1::Run> later_watch;  // what it sends from the second call on; empty: the same
  bool watch_hangs = false;          // after that, instead of ending
  std::vector<v1::ReadLogResponse> log;
  bool log_hangs = false;
  std::vector<v1::Event> events;
  std::vector<v1::WatchEventsResponse> event_stream;
  bool events_hang = false;                    // after those, instead of ending
  std::map<std::string, std::string> results;  // content by path
  bool sends_digest = true;                    // of results, as servers of today do
  std::string digest;                          // another one than the true one
  std::vector<std::string> metrics;
  std::vector<v1::StepExplanation> explained;  // of the first run; what its steps say is filled in
  std::vector<v1::QueueEntry> queue;
  v1::EstimateErrors estimates_so_far;  // of the queue, where it has any start
  v1::GetStandingResponse standing;
  std::vector<v1::Standing> standings;  // of everybody
  std::vector<v1::SeriesWindows> windows;
  std::vector<v1::Node> nodes;
  std::string note;  // of changes that are about no run
  v1::QueryUsageResponse usage;
  std::vector<v1::Interval> intervals;
  std::vector<v1::Series> series;
  std::vector<v1::Profile> profiles;
  v1::GetRegistryStatusResponse registry_status;
  v1::ListReceiversResponse receivers;
  v1::ReloadConfigurationResponse reload;
  v1::ReconcileResponse reconcile;
  std::string version = "0.1.0";
  std::map<std::string, std::vector<snapshot::Entry>> snapshots;  // by id
  std::map<std::string, std::string> blobs;                       // by digest
  std::map<std::string, std::string> partial_blobs;
  int64_t max_snapshot_bytes = int64_t{1} << 30;
  // A stream that brings the bytes of all above this is ended as a lost connection, once.
  int64_t break_after_blob_bytes = std::numeric_limits<int64_t>::max();
  // The next calls of a method are answered by these, first to last.
  std::map<std::string, std::deque<grpc::Status>> failures;
};

struct Asked {
  std::vector<v1::SubmitRunRequest> submits;
  std::vector<v1::SubmitRunRequest> plans;  // dry runs
  std::vector<v1::ListRunsRequest> lists;
  std::vector<v1::ReadLogRequest> logs;
  std::vector<v1::QueryUsageRequest> usages;
  std::vector<v1::ListIntervalsRequest> audits;
  std::vector<v1::ListQueueRequest> queues;
  std::vector<v1::SetQuotaRequest> quotas;
  std::vector<int64_t> removed_rules;
  std::vector<v1::ListWindowsRequest> windows;
  std::vector<v1::HoldWindowOpenRequest> holds;
  std::vector<v1::MarkNodeRequest> marks;
  std::vector<v1::ClearNodeRequest> clears;
  std::vector<v1::UpdateRunRequest> updates;
  std::vector<v1::CloneRunRequest> clones;
  std::vector<std::string> steered;  // "StopRun 42", in order
  std::vector<int64_t> result_offsets;
  std::vector<std::string> request_ids;  // of all mutating calls
  int blobs = 0;                         // that arrived whole
  int64_t blob_bytes = 0;
  int commits = 0;  // of snapshots
  int watches = 0;
};

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  std::string address() const;
  Script& script() { return script_; }
  Asked asked() const;

  // While calls may be under way.
  void Set(const std::function<void(Script&)>& change);

  // Waits until a hanging stream has been opened.
  void AwaitHanging();
  // The streams that hang end, as if there were nothing more to send.
  void CancelHanging();

 private:
  class Runs;
  class Logs;
  class Snapshots;
  class Registry;
  class Usage;
  class Quotas;
  class Windows;
  class Nodes;
  class System;

  // What every method does first: token, and failures that are due.
  grpc::Status Enter(grpc::ServerContext* context, const std::string& method);
  const v1::Run* Find(const std::string& selector) const;
  grpc::Status HangUntilCancelled(grpc::ServerContext* context);

  Script script_;
  mutable std::mutex mutex_;
  Asked asked_;  // guarded by mutex_
  std::condition_variable hanging_changed_;
  int hanging_ = 0;   // guarded by mutex_
  int releases_ = 0;  // guarded by mutex_
  std::unique_ptr<Runs> runs_;
  std::unique_ptr<Logs> logs_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Usage> usage_;
  std::unique_ptr<Quotas> quotas_;
  std::unique_ptr<Windows> windows_;
  std::unique_ptr<Nodes> nodes_;
  std::unique_ptr<System> system_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tp::cli
