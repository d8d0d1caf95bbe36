#include "fake_server.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/server_builder.h>

#include "base/sha256.h"
#include "tp/v1/error.pb.h"

namespace tp::cli {
namespace {

grpc::Status NoSuchRun(const std::string& selector) {
  v1::ErrorDetail detail;
  detail.set_reason("RUN_NOT_FOUND");
  detail.set_field("run");
  return {grpc::StatusCode::NOT_FOUND, fmt::format("there is no run {}", selector), detail.SerializeAsString()};
}

std::vector<snapshot::Entry> FromProto(const std::vector<v1::ManifestEntry>& messages) {
  std::vector<snapshot::Entry> entries;
  for (const v1::ManifestEntry& message : messages) {
    const auto kind = message.kind() == v1::ENTRY_KIND_FILE        ? snapshot::EntryKind::kFile
                      : message.kind() == v1::ENTRY_KIND_DIRECTORY ? snapshot::EntryKind::kDirectory
                                                                   : snapshot::EntryKind::kSymlink;
    entries.push_back({.path = message.path(),
                       .kind = kind,
                       .executable = message.executable(),
                       .sha256 = message.sha256(),
                       .bytes = message.bytes(),
                       .link_target = message.link_target()});
  }
  return entries;
}

}  // namespace

grpc::Status FakeServer::Enter(grpc::ServerContext* context, const std::string& method) {
  const auto& metadata = context->client_metadata();
  const auto token = metadata.find("authorization");
  const std::string expected = std::string("Bearer ") + kTestToken;
  if (token == metadata.end() || std::string(token->second.data(), token->second.size()) != expected) {
    return {grpc::StatusCode::UNAUTHENTICATED, "the token is not known"};
  }
  const std::scoped_lock lock(mutex_);
  auto& failures = script_.failures[method];
  if (failures.empty()) return grpc::Status::OK;
  const grpc::Status failure = failures.front();
  failures.pop_front();
  return failure;
}

const v1::Run* FakeServer::Find(const std::string& selector) const {
  const auto found = std::find_if(script_.runs.begin(), script_.runs.end(), [&](const v1::Run& run) {
    return selector == "@last" || run.id() == selector || std::to_string(run.n()) == selector;
  });
  return found == script_.runs.end() ? nullptr : &*found;
}

grpc::Status FakeServer::HangUntilCancelled(grpc::ServerContext* context) {
  std::unique_lock lock(mutex_);
  const int releases = releases_;
  ++hanging_;
  hanging_changed_.notify_all();
  while (!context->IsCancelled()) {
    const auto released = [&] { return releases_ != releases; };
    if (hanging_changed_.wait_for(lock, std::chrono::milliseconds(2), released)) return grpc::Status::OK;
  }
  return grpc::Status::CANCELLED;
}

void FakeServer::CancelHanging() {
  const std::scoped_lock lock(mutex_);
  ++releases_;
  hanging_changed_.notify_all();
}

void FakeServer::Set(const std::function<void(Script&)>& change) {
  const std::scoped_lock lock(mutex_);
  change(script_);
}

void FakeServer::AwaitHanging() {
  std::unique_lock lock(mutex_);
  hanging_changed_.wait(lock, [this] { return hanging_ > 0; });
  hanging_ = 0;
}

Asked FakeServer::asked() const {
  const std::scoped_lock lock(mutex_);
  return asked_;
}

namespace {

// What the calls for one run are named.
const std::map<v1::Steering, std::string> kMethodOf = {
    {v1::STEERING_STOP, "StopRun"},   {v1::STEERING_PAUSE, "PauseRun"}, {v1::STEERING_RESUME, "ResumeRun"},
    {v1::STEERING_RETRY, "RetryRun"}, {v1::STEERING_HOLD, "HoldRun"},   {v1::STEERING_RELEASE, "ReleaseRun"}};

}  // namespace

class FakeServer::Runs final : public v1::RunService::Service {
 public:
  explicit Runs(FakeServer& server) : server_(server) {}

  grpc::Status SubmitRun(grpc::ServerContext* context, const v1::SubmitRunRequest* request,
                         v1::SubmitRunResponse* response) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      (request->dry_run() ? server_.asked_.plans : server_.asked_.submits).push_back(*request);
      if (!request->dry_run()) server_.asked_.request_ids.push_back(request->request_id());
    }
    const std::string method = request->dry_run() ? "SubmitRun, dry run" : "SubmitRun";
    if (const grpc::Status status = server_.Enter(context, method); !status.ok()) return status;
    *response->mutable_run() = server_.script_.runs.at(0);
    *response->mutable_run()->mutable_steps(0)->mutable_spec() = request->steps(0);
    response->mutable_notes()->Assign(server_.script_.notes.begin(), server_.script_.notes.end());
    return grpc::Status::OK;
  }

  grpc::Status GetRun(grpc::ServerContext* context, const v1::GetRunRequest* request,
                      v1::GetRunResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetRun"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    const v1::Run* run = server_.Find(request->run());
    if (run == nullptr) return NoSuchRun(request->run());
    *response->mutable_run() = *run;
    return grpc::Status::OK;
  }

  // Pages of the size that was asked for; the token is the place to go on from.
  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListRuns"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.lists.push_back(*request);
    const auto begin = static_cast<size_t>(std::atoi(request->page_token().c_str()));
    const size_t end = std::min(server_.script_.runs.size(), begin + static_cast<size_t>(request->page_size()));
    const auto& states = request->states();
    for (size_t i = begin; i < end; ++i) {
      const v1::Run& run = server_.script_.runs[i];
      const bool wanted = states.empty() || std::find(states.begin(), states.end(), run.state()) != states.end();
      if (wanted) *response->add_runs() = run;
    }
    if (end < server_.script_.runs.size()) response->set_next_page_token(std::to_string(end));
    return grpc::Status::OK;
  }

  grpc::Status WatchRun(grpc::ServerContext* context, const v1::WatchRunRequest* request,
                        grpc::ServerWriter<v1::WatchRunResponse>* writer) override {
    const bool first = CountWatch() == 1;
    if (server_.Find(request->run()) == nullptr) return NoSuchRun(request->run());
    const Script& script = server_.script_;
    for (const v1::Run& run : first || script.later_watch.empty() ? script.watch : script.later_watch) {
      v1::WatchRunResponse response;
      *response.mutable_run() = run;
      writer->Write(response);
    }
    if (const grpc::Status status = server_.Enter(context, "WatchRun"); !status.ok()) return status;
    return server_.script_.watch_hangs ? server_.HangUntilCancelled(context) : grpc::Status::OK;
  }

  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override {
    if (const grpc::Status status = server_.Enter(context, "WatchEvents"); !status.ok()) return status;
    std::vector<v1::WatchEventsResponse> stream;
    server_.Set([&](const Script& script) { stream = script.event_stream; });
    for (const v1::WatchEventsResponse& response : stream) {
      const bool seen = response.has_event() && response.event().revision() <= request->after_revision();
      if (!seen) writer->Write(response);
    }
    return server_.script_.events_hang ? server_.HangUntilCancelled(context) : grpc::Status::OK;
  }

  // `failures` may hold "StopRun" and the like for one run each, besides "SteerRuns".
  grpc::Status SteerRuns(grpc::ServerContext* context, const v1::SteerRunsRequest* request,
                         v1::SteerRunsResponse* response) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.request_ids.push_back(request->request_id());
    }
    if (const grpc::Status status = server_.Enter(context, "SteerRuns"); !status.ok()) return status;
    const std::string method = kMethodOf.at(request->steering());
    for (const std::string& selector : request->runs()) {
      grpc::Status status = server_.Enter(context, method);
      const v1::Run* run = server_.Find(selector);
      if (status.ok() && run == nullptr) status = NoSuchRun(selector);
      v1::SteeredRun& steered = *response->add_runs();
      steered.set_run(selector);
      steered.set_code(status.error_code());
      steered.set_message(status.error_message());
      steered.mutable_detail()->ParseFromString(status.error_details());
      if (!status.ok()) continue;
      steered.set_run_id(run->id());
      steered.set_note(server_.script_.steer_note);
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.steered.push_back(method + " " + selector);
    }
    return grpc::Status::OK;
  }

  grpc::Status RemoveRun(grpc::ServerContext* context, const v1::RemoveRunRequest* request,
                         v1::RemoveRunResponse* response) override {
    return Steer(context, "RemoveRun", *request, *response);
  }

  grpc::Status UpdateRun(grpc::ServerContext* context, const v1::UpdateRunRequest* request,
                         v1::UpdateRunResponse* response) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.updates.push_back(*request);
    }
    return Steer(context, "UpdateRun", *request, *response);
  }

  grpc::Status CloneRun(grpc::ServerContext* context, const v1::CloneRunRequest* request,
                        v1::CloneRunResponse* response) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.clones.push_back(*request);
      if (!request->dry_run()) server_.asked_.request_ids.push_back(request->request_id());
    }
    if (const grpc::Status status = server_.Enter(context, "CloneRun"); !status.ok()) return status;
    if (server_.Find(request->run()) == nullptr) return NoSuchRun(request->run());
    *response->mutable_run() = server_.script_.runs.at(0);
    response->mutable_notes()->Assign(server_.script_.notes.begin(), server_.script_.notes.end());
    return grpc::Status::OK;
  }

  grpc::Status ExplainRun(grpc::ServerContext* context, const v1::ExplainRunRequest* request,
                          v1::ExplainRunResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ExplainRun"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    const v1::Run* run = server_.Find(request->run());
    if (run == nullptr) return NoSuchRun(request->run());
    *response->mutable_run() = *run;
    const auto& explained = server_.script_.explained;
    for (int i = 0; i < run->steps_size(); ++i) {
      v1::StepExplanation& step = *response->add_steps();
      if (static_cast<size_t>(i) < explained.size()) step = explained[static_cast<size_t>(i)];
      step.set_index(i + 1);
      step.set_name(run->steps(i).spec().name());
      step.set_state(run->steps(i).state());
      step.set_reason(run->steps(i).reason());
      *step.mutable_gates() = run->steps(i).gates();
    }
    return grpc::Status::OK;
  }

  // Pages of the size that was asked for, as ListRuns.
  grpc::Status ListQueue(grpc::ServerContext* context, const v1::ListQueueRequest* request,
                         v1::ListQueueResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListQueue"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.queues.push_back(*request);
    const auto& queue = server_.script_.queue;
    const auto begin = static_cast<size_t>(std::atoi(request->page_token().c_str()));
    const size_t end = std::min(queue.size(), begin + static_cast<size_t>(request->page_size()));
    for (size_t i = begin; i < end; ++i) *response->add_entries() = queue[i];
    if (end < queue.size()) response->set_next_page_token(std::to_string(end));
    response->set_total_count(static_cast<int32_t>(queue.size()));
    for (const v1::QueueEntry& entry : queue) response->set_total_cards(response->total_cards() + entry.cards());
    const v1::EstimateErrors& so_far = server_.script_.estimates_so_far;
    if (so_far.starts() > 0) *response->mutable_estimates_so_far() = so_far;
    return grpc::Status::OK;
  }

  grpc::Status ListRunEvents(grpc::ServerContext* context, const v1::ListRunEventsRequest* request,
                             v1::ListRunEventsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListRunEvents"); !status.ok()) return status;
    if (server_.Find(request->run()) == nullptr) return NoSuchRun(request->run());
    for (const v1::Event& event : server_.script_.events) {
      if (event.revision() > request->after_revision()) *response->add_events() = event;
    }
    return grpc::Status::OK;
  }

  grpc::Status ListResults(grpc::ServerContext* context, const v1::ListResultsRequest*,
                           v1::ListResultsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListResults"); !status.ok()) return status;
    for (const auto& [path, content] : server_.script_.results) {
      v1::ResultFile& file = *response->add_files();
      file.set_path(path);
      file.set_bytes(static_cast<int64_t>(content.size()));
      file.mutable_modified_at()->set_seconds(1'796'025'612);
    }
    return grpc::Status::OK;
  }

  // Byte by byte from the offset on; a failure that is due comes after the first.
  grpc::Status ReadResult(grpc::ServerContext* context, const v1::ReadResultRequest* request,
                          grpc::ServerWriter<v1::ReadResultResponse>* writer) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.result_offsets.push_back(request->offset());
    }
    const auto found = server_.script_.results.find(request->path());
    if (found == server_.script_.results.end()) {
      return {grpc::StatusCode::NOT_FOUND, fmt::format("there is no result {}", request->path())};
    }
    for (size_t i = static_cast<size_t>(request->offset()); i < found->second.size(); ++i) {
      v1::ReadResultResponse response;
      response.set_data(found->second.substr(i, 1));
      writer->Write(response);
      if (const grpc::Status status = server_.Enter(context, "ReadResult"); !status.ok()) return status;
    }
    if (request->offset() > static_cast<int64_t>(found->second.size())) {
      return {grpc::StatusCode::OUT_OF_RANGE, "the file is shorter by now"};
    }
    if (!server_.script_.sends_digest) return grpc::Status::OK;
    Sha256 digest;
    digest.Update(found->second);
    v1::ReadResultResponse last;
    last.set_sha256(server_.script_.digest.empty() ? digest.HexDigest() : server_.script_.digest);
    writer->Write(last);
    return grpc::Status::OK;
  }

  grpc::Status ReadMetrics(grpc::ServerContext* context, const v1::ReadMetricsRequest*,
                           v1::ReadMetricsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ReadMetrics"); !status.ok()) return status;
    response->mutable_lines()->Assign(server_.script_.metrics.begin(), server_.script_.metrics.end());
    return grpc::Status::OK;
  }

 private:
  int CountWatch() {
    const std::scoped_lock lock(server_.mutex_);
    return ++server_.asked_.watches;
  }

  template <typename Request, typename Response>
  grpc::Status Steer(grpc::ServerContext* context, const std::string& method, const Request& request,
                     Response& response) {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.request_ids.push_back(request.request_id());
      server_.asked_.steered.push_back(method + " " + request.run());
    }
    if (const grpc::Status status = server_.Enter(context, method); !status.ok()) return status;
    const v1::Run* run = server_.Find(request.run());
    if (run == nullptr) return NoSuchRun(request.run());
    *response.mutable_run() = *run;
    response.set_note(server_.script_.steer_note);
    return grpc::Status::OK;
  }

  FakeServer& server_;
};

class FakeServer::Logs final : public v1::LogService::Service {
 public:
  explicit Logs(FakeServer& server) : server_(server) {}

  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::ReadLogResponse>* writer) override {
    {
      const std::scoped_lock lock(server_.mutex_);
      server_.asked_.logs.push_back(*request);
    }
    if (server_.Find(request->run()) == nullptr) return NoSuchRun(request->run());
    for (const v1::ReadLogResponse& chunk : server_.script_.log) writer->Write(chunk);
    if (const grpc::Status status = server_.Enter(context, "ReadLog"); !status.ok()) return status;
    return server_.script_.log_hangs ? server_.HangUntilCancelled(context) : grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Snapshots final : public v1::SnapshotService::Service {
 public:
  explicit Snapshots(FakeServer& server) : server_(server) {}

  grpc::Status GetSnapshotLimits(grpc::ServerContext* context, const v1::GetSnapshotLimitsRequest*,
                                 v1::GetSnapshotLimitsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetSnapshotLimits"); !status.ok()) return status;
    response->set_max_bytes(server_.script_.max_snapshot_bytes);
    response->set_max_entries(100'000);
    return grpc::Status::OK;
  }

  grpc::Status FindMissingBlobs(grpc::ServerContext* context, const v1::FindMissingBlobsRequest* request,
                                v1::FindMissingBlobsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "FindMissingBlobs"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    for (const std::string& sha256 : request->sha256()) {
      if (server_.script_.blobs.contains(sha256)) continue;
      auto* missing = response->add_missing();
      missing->set_sha256(sha256);
      missing->set_received_bytes(static_cast<int64_t>(server_.script_.partial_blobs[sha256].size()));
    }
    return grpc::Status::OK;
  }

  grpc::Status PutBlobs(grpc::ServerContext* context, grpc::ServerReader<v1::PutBlobsRequest>* reader,
                        v1::PutBlobsResponse*) override {
    if (const grpc::Status status = server_.Enter(context, "PutBlobs"); !status.ok()) return status;
    v1::PutBlobsRequest part;
    v1::BlobHeader header;
    while (reader->Read(&part)) {
      const std::scoped_lock lock(server_.mutex_);
      if (part.has_header()) header = part.header();
      server_.asked_.blob_bytes += static_cast<int64_t>(part.data().size());
      std::string& blob = server_.script_.partial_blobs[header.sha256()];
      if (part.has_header()) blob.resize(static_cast<size_t>(header.offset()));
      blob += part.data();
      if (static_cast<int64_t>(blob.size()) == header.bytes()) {
        ++server_.asked_.blobs;
        server_.script_.blobs[header.sha256()] = blob;
      }
      if (server_.asked_.blob_bytes > server_.script_.break_after_blob_bytes) {
        server_.script_.break_after_blob_bytes = std::numeric_limits<int64_t>::max();
        return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status CommitManifest(grpc::ServerContext* context, grpc::ServerReader<v1::CommitManifestRequest>* reader,
                              v1::CommitManifestResponse* response) override {
    std::vector<v1::ManifestEntry> entries;
    v1::CommitManifestRequest part;
    std::string request_id;
    while (reader->Read(&part)) {
      if (!part.request_id().empty()) request_id = part.request_id();
      entries.insert(entries.end(), part.entries().begin(), part.entries().end());
    }
    {
      const std::scoped_lock lock(server_.mutex_);
      ++server_.asked_.commits;
      server_.asked_.request_ids.push_back(request_id);
    }
    if (const grpc::Status status = server_.Enter(context, "CommitManifest"); !status.ok()) return status;
    const auto manifest = snapshot::Manifest::Make(FromProto(entries));
    if (!manifest.ok()) return {grpc::StatusCode::INVALID_ARGUMENT, std::string(manifest.status().message())};
    const std::scoped_lock lock(server_.mutex_);
    server_.script_.snapshots[manifest->id()] = manifest->entries();
    response->set_snapshot_id(manifest->id());
    return grpc::Status::OK;
  }

  grpc::Status GetSnapshot(grpc::ServerContext* context, const v1::GetSnapshotRequest* request,
                           v1::GetSnapshotResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetSnapshot"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    if (server_.script_.snapshots.count(request->snapshot_id()) == 0) {
      return {grpc::StatusCode::NOT_FOUND, "there is no such snapshot"};
    }
    response->set_snapshot_id(request->snapshot_id());
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Registry final : public v1::RegistryService::Service {
 public:
  explicit Registry(FakeServer& server) : server_(server) {}

  grpc::Status ListSeries(grpc::ServerContext* context, const v1::ListSeriesRequest*,
                          v1::ListSeriesResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListSeries"); !status.ok()) return status;
    response->mutable_series()->Assign(server_.script_.series.begin(), server_.script_.series.end());
    response->set_registry_version(3);
    return grpc::Status::OK;
  }

  grpc::Status ListProfiles(grpc::ServerContext* context, const v1::ListProfilesRequest*,
                            v1::ListProfilesResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListProfiles"); !status.ok()) return status;
    response->mutable_profiles()->Assign(server_.script_.profiles.begin(), server_.script_.profiles.end());
    response->set_registry_version(3);
    return grpc::Status::OK;
  }

  grpc::Status ListExecutors(grpc::ServerContext* context, const v1::ListExecutorsRequest*,
                             v1::ListExecutorsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListExecutors"); !status.ok()) return status;
    v1::Executor& plain = *response->add_executors();
    plain.set_name("cpu/default");
    plain.set_backend("local");
    plain.set_config_json("{}");
    plain.add_series("cpu");
    v1::Executor& docker = *response->add_executors();
    docker.set_name("gpu/h200-pool");
    docker.set_backend("docker");
    docker.set_config_json(R"({"image":"pytorch:2","storage":{"volume_name":"jobs"}})");
    docker.add_series("h200");
    docker.add_distributed_series("a100");
    response->set_registry_version(3);
    return grpc::Status::OK;
  }

  grpc::Status GetRegistryStatus(grpc::ServerContext* context, const v1::GetRegistryStatusRequest*,
                                 v1::GetRegistryStatusResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetRegistryStatus"); !status.ok()) return status;
    *response = server_.script_.registry_status;
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Usage final : public v1::UsageService::Service {
 public:
  explicit Usage(FakeServer& server) : server_(server) {}

  grpc::Status QueryUsage(grpc::ServerContext* context, const v1::QueryUsageRequest* request,
                          v1::QueryUsageResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "QueryUsage"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.usages.push_back(*request);
    *response = server_.script_.usage;
    return grpc::Status::OK;
  }

  // One interval a page.
  grpc::Status ListIntervals(grpc::ServerContext* context, const v1::ListIntervalsRequest* request,
                             v1::ListIntervalsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListIntervals"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.audits.push_back(*request);
    const auto at = static_cast<size_t>(std::atoi(request->page_token().c_str()));
    if (at >= server_.script_.intervals.size()) return grpc::Status::OK;
    *response->add_intervals() = server_.script_.intervals[at];
    if (at + 1 < server_.script_.intervals.size()) response->set_next_page_token(std::to_string(at + 1));
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Quotas final : public v1::QuotaService::Service {
 public:
  explicit Quotas(FakeServer& server) : server_(server) {}

  grpc::Status GetStanding(grpc::ServerContext* context, const v1::GetStandingRequest* request,
                           v1::GetStandingResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetStanding"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    *response = server_.script_.standing;
    if (!request->user().empty()) response->mutable_standing()->set_user(request->user());
    return grpc::Status::OK;
  }

  // One user a page.
  grpc::Status ListQuotas(grpc::ServerContext* context, const v1::ListQuotasRequest* request,
                          v1::ListQuotasResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListQuotas"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    const auto& standings = server_.script_.standings;
    *response->mutable_defaults() = server_.script_.standing.defaults();
    const auto next = std::find_if(standings.begin(), standings.end(), [&](const v1::Standing& standing) {
      return standing.user() > request->after_user();
    });
    if (next == standings.end()) return grpc::Status::OK;
    *response->add_standings() = *next;
    if (next + 1 != standings.end()) response->set_next_after_user(next->user());
    return grpc::Status::OK;
  }

  grpc::Status SetQuota(grpc::ServerContext* context, const v1::SetQuotaRequest* request,
                        v1::SetQuotaResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "SetQuota"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.quotas.push_back(*request);
    server_.asked_.request_ids.push_back(request->request_id());
    response->set_note(server_.script_.note);
    if (request->dry_run()) *response->mutable_forecast() = server_.script_.reload.forecast();
    return grpc::Status::OK;
  }

  grpc::Status RemoveQuotaRule(grpc::ServerContext* context, const v1::RemoveQuotaRuleRequest* request,
                               v1::RemoveQuotaRuleResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "RemoveQuotaRule"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.removed_rules.push_back(request->rule());
    server_.asked_.request_ids.push_back(request->request_id());
    response->set_note(server_.script_.note);
    if (request->dry_run()) *response->mutable_forecast() = server_.script_.reload.forecast();
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Windows final : public v1::WindowService::Service {
 public:
  explicit Windows(FakeServer& server) : server_(server) {}

  grpc::Status ListWindows(grpc::ServerContext* context, const v1::ListWindowsRequest* request,
                           v1::ListWindowsResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListWindows"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.windows.push_back(*request);
    for (const v1::SeriesWindows& windows : server_.script_.windows) *response->add_series() = windows;
    return grpc::Status::OK;
  }

  grpc::Status HoldWindowOpen(grpc::ServerContext* context, const v1::HoldWindowOpenRequest* request,
                              v1::HoldWindowOpenResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "HoldWindowOpen"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.holds.push_back(*request);
    server_.asked_.request_ids.push_back(request->request_id());
    response->set_note(server_.script_.note);
    if (request->dry_run()) *response->mutable_forecast() = server_.script_.reload.forecast();
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::Nodes final : public v1::NodeService::Service {
 public:
  explicit Nodes(FakeServer& server) : server_(server) {}

  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListNodes"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    for (const v1::Node& node : server_.script_.nodes) {
      if (request->node().empty() || request->node() == node.name()) *response->add_nodes() = node;
    }
    return grpc::Status::OK;
  }

  grpc::Status MarkNode(grpc::ServerContext* context, const v1::MarkNodeRequest* request,
                        v1::MarkNodeResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "MarkNode"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.marks.push_back(*request);
    server_.asked_.request_ids.push_back(request->request_id());
    response->set_note(server_.script_.note);
    return grpc::Status::OK;
  }

  grpc::Status ClearNode(grpc::ServerContext* context, const v1::ClearNodeRequest* request,
                         v1::ClearNodeResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ClearNode"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.clears.push_back(*request);
    server_.asked_.request_ids.push_back(request->request_id());
    response->set_note(server_.script_.note);
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

class FakeServer::System final : public v1::SystemService::Service {
 public:
  explicit System(FakeServer& server) : server_(server) {}

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "GetServerInfo"); !status.ok()) return status;
    response->set_version(server_.script_.version);
    response->set_deployment("test");
    response->set_epoch(2);
    response->set_revision(77);
    response->set_registry_version(3);
    return grpc::Status::OK;
  }

  grpc::Status WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest*, v1::WhoAmIResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "WhoAmI"); !status.ok()) return status;
    response->set_user("alice");
    response->set_role("user");
    return grpc::Status::OK;
  }

  grpc::Status ListReceivers(grpc::ServerContext* context, const v1::ListReceiversRequest*,
                             v1::ListReceiversResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ListReceivers"); !status.ok()) return status;
    *response = server_.script_.receivers;
    return grpc::Status::OK;
  }

  grpc::Status ReloadConfiguration(grpc::ServerContext* context, const v1::ReloadConfigurationRequest* request,
                                   v1::ReloadConfigurationResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "ReloadConfiguration"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.request_ids.push_back(request->request_id());
    *response = server_.script_.reload;
    return grpc::Status::OK;
  }

  grpc::Status Reconcile(grpc::ServerContext* context, const v1::ReconcileRequest* request,
                         v1::ReconcileResponse* response) override {
    if (const grpc::Status status = server_.Enter(context, "Reconcile"); !status.ok()) return status;
    const std::scoped_lock lock(server_.mutex_);
    server_.asked_.request_ids.push_back(request->request_id());
    *response = server_.script_.reconcile;
    if (request->dry_run()) response->clear_note();
    return grpc::Status::OK;
  }

 private:
  FakeServer& server_;
};

FakeServer::FakeServer()
    : runs_(std::make_unique<Runs>(*this)),
      logs_(std::make_unique<Logs>(*this)),
      snapshots_(std::make_unique<Snapshots>(*this)),
      registry_(std::make_unique<Registry>(*this)),
      usage_(std::make_unique<Usage>(*this)),
      quotas_(std::make_unique<Quotas>(*this)),
      windows_(std::make_unique<Windows>(*this)),
      nodes_(std::make_unique<Nodes>(*this)),
      system_(std::make_unique<System>(*this)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(runs_.get());
  builder.RegisterService(logs_.get());
  builder.RegisterService(snapshots_.get());
  builder.RegisterService(registry_.get());
  builder.RegisterService(usage_.get());
  builder.RegisterService(quotas_.get());
  builder.RegisterService(windows_.get());
  builder.RegisterService(nodes_.get());
  builder.RegisterService(system_.get());
  server_ = builder.BuildAndStart();
  if (!server_) std::abort();
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

std::string FakeServer::address() const { return fmt::format("127.0.0.1:{}", port_); }

}  // namespace tp::cli
