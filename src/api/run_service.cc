#include "api/run_service.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/convert.h"
#include "api/errors.h"
#include "api/estimate_view.h"
#include "api/mutation.h"
#include "api/queue_view.h"
#include "api/recipes.h"
#include "api/request.h"
#include "api/run_changes.h"
#include "api/run_output.h"
#include "api/run_reader.h"
#include "api/run_watch.h"
#include "api/steer_runs.h"
#include "api/submit_plan.h"
#include "snapshot/store.h"

namespace tp::api {
namespace {

// Each is read before the answer.
constexpr int kMaxAfter = 32;

constexpr std::string_view kSubmitRun = "/tp.v1.RunService/SubmitRun";
constexpr std::string_view kGetRun = "/tp.v1.RunService/GetRun";
constexpr std::string_view kListRuns = "/tp.v1.RunService/ListRuns";
constexpr std::string_view kStopRun = "/tp.v1.RunService/StopRun";
constexpr std::string_view kPauseRun = "/tp.v1.RunService/PauseRun";
constexpr std::string_view kResumeRun = "/tp.v1.RunService/ResumeRun";
constexpr std::string_view kRetryRun = "/tp.v1.RunService/RetryRun";
constexpr std::string_view kSteerRuns = "/tp.v1.RunService/SteerRuns";
constexpr std::string_view kUpdateRun = "/tp.v1.RunService/UpdateRun";
constexpr std::string_view kCloneRun = "/tp.v1.RunService/CloneRun";
constexpr std::string_view kRemoveRun = "/tp.v1.RunService/RemoveRun";
constexpr std::string_view kExplainRun = "/tp.v1.RunService/ExplainRun";
constexpr std::string_view kListQueue = "/tp.v1.RunService/ListQueue";
constexpr std::string_view kListRunEvents = "/tp.v1.RunService/ListRunEvents";
constexpr std::string_view kListResults = "/tp.v1.RunService/ListResults";
constexpr std::string_view kReadMetrics = "/tp.v1.RunService/ReadMetrics";

// --- Submit ---------------------------------------------------------------------------------------

// Touched, it stays until the run needs it.
absl::Status CheckSnapshot(Context& context, const std::string& snapshot_id) {
  if (snapshot_id.empty()) return absl::OkStatus();
  if (context.snapshots.Touch(snapshot_id)) return absl::OkStatus();
  return WithReason(
      WithField(NotFound("snapshot {} is not on this server: upload it again", snapshot_id), "snapshot_id"),
      "SNAPSHOT_NOT_FOUND");
}

// One note a line, as the loop remembers them.
template <typename Response>
void CopyNotes(const std::string& text, Response* response) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) response->add_notes(line);
  }
}

template <typename Response>
MutatedThen SubmitAnswer(Context& context, const Call& call, Response* response, Done done) {
  return [&context, call, response, done = std::move(done)](const absl::StatusOr<Mutated>& result) {
    if (result.ok()) {
      *response->mutable_run() = View(context, call, result->run);
      CopyNotes(result->note, response);
    }
    done(result.status());
  };
}

// Of a dry run: the answer, and what each step would be launched with.
template <typename Response>
MutatedThen PlannedAnswer(Context& context, Response* response, MutatedThen answer) {
  return [&context, response, answer = std::move(answer)](absl::StatusOr<Mutated> result) {
    if (result.ok()) {
      const absl::Status planned = AddPlan(context.reader, *context.registry(), result->run, response->mutable_plan());
      if (!planned.ok()) result = planned;
    }
    answer(std::move(result));
  };
}

// `parse` makes the submission of the request; not called for a request that was answered before.
template <typename Request, typename Response, typename Parse>
void Submit(Context& context, const Call& call, const Request& request, Response* response, const Done& done,
            const Parse& parse) {
  MutatedThen then = SubmitAnswer(context, call, response, done);
  std::string body;
  if (!request.dry_run()) {
    if (auto status = CheckRequestId(request.request_id()); !status.ok()) return done(status);
    body = BodySha256(call.method, request);
    const auto answered = FindAnswered(context, call, request.request_id(), body);
    if (!answered.ok()) return done(answered.status());
    if (*answered) return Repeat(context, **answered, then);
  }
  absl::StatusOr<loop::SubmitRun> action = parse(request);
  if (!action.ok()) return done(action.status());
  if (request.dry_run()) {
    return Preview(context, {.who = call.principal(), .submit = *std::move(action)},
                   PlannedAnswer(context, response, std::move(then)));
  }
  if (auto status = context.may_take_work(); !status.ok()) return done(status);
  if (auto status = CheckSnapshot(context, action->snapshot_id); !status.ok()) return done(status);
  Mutate(context, MakeCommand(call, request.request_id(), std::move(body), *std::move(action)), std::move(then));
}

absl::Status AddAfter(Context& context, const Call& call, const v1::SubmitRunRequest& request,
                      loop::SubmitRun* submit) {
  if (request.after_size() > kMaxAfter) {
    return FieldError("after", "{} runs to come after, at most {} are taken", request.after_size(), kMaxAfter);
  }
  for (const v1::RunDependency& other : request.after()) {
    auto stored = FindRun(context, call, other.run());
    if (!stored.ok()) return WithField(stored.status(), "after");
    loop::AfterRun& added = submit->after.emplace_back();
    added.stored = *std::move(stored);
    TP_ASSIGN_OR_RETURN(added.when, ParseWhen("after", other.when()));
  }
  return absl::OkStatus();
}

absl::StatusOr<loop::SubmitRun> ParseWhole(Context& context, const Call& call, v1::SubmitRunRequest request) {
  TP_RETURN_IF_ERROR(FillFromRecipes(*context.registry(), request));
  TP_ASSIGN_OR_RETURN(loop::SubmitRun submit, ParseSubmit(request));
  TP_ASSIGN_OR_RETURN(submit.notify, ParseNotices(request, context.registry()->receivers));
  TP_RETURN_IF_ERROR(AddAfter(context, call, request, &submit));
  return submit;
}

absl::Status CheckMayClone(const Call& call, const core::Run& run) {
  if (auth::MayReadEnvironment(call.caller, run.owner)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied,
               "{} belongs to {}: a clone would show its environment and files, which are for its owner and admins",
               run.id(), run.owner);
}

absl::StatusOr<loop::SubmitRun> CloneOf(Context& context, const Call& call, const v1::CloneRunRequest& request) {
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps original, FindRun(context, call, request.run()));
  TP_RETURN_IF_ERROR(CheckMayClone(call, original.run));
  return ParseClone(request, original);
}

// --- Stop, pause, resume, retry, update, remove ------------------------------------------------------

// `make_action` makes loop::StopRun and its like of the stored run.
template <typename Request, typename Response, typename MakeAction>
void Change(Context& context, const Call& call, const Request& request, Response* response, const Done& done,
            const MakeAction& make_action) {
  if (auto status = CheckRequestId(request.request_id()); !status.ok()) return done(status);
  std::string body = BodySha256(call.method, request);
  const auto answered = FindAnswered(context, call, request.request_id(), body);
  if (!answered.ok()) return done(answered.status());
  MutatedThen then = [&context, call, response, done](const absl::StatusOr<Mutated>& result) {
    if (result.ok()) {
      *response->mutable_run() = View(context, call, result->run);
      response->set_note(result->note);
    }
    done(result.status());
  };
  if (*answered) return Repeat(context, **answered, then);
  auto stored = FindRun(context, call, request.run());
  if (!stored.ok()) return done(stored.status());
  Mutate(context, MakeCommand(call, request.request_id(), std::move(body), make_action(*std::move(stored))),
         std::move(then));
}

template <typename Action, typename Request, typename Response>
void Steer(Context& context, const Call& call, const Request& request, Response* response, const Done& done) {
  Change(context, call, request, response, done,
         [](core::RunWithSteps stored) { return Action{.stored = std::move(stored)}; });
}

void Retry(Context& context, const Call& call, const v1::RetryRunRequest& request, v1::RetryRunResponse* response,
           const Done& done) {
  Change(context, call, request, response, done,
         [&](core::RunWithSteps&& stored) { return RetryOf(context, std::move(stored)); });
}

void Update(Context& context, const Call& call, const v1::UpdateRunRequest& request, v1::UpdateRunResponse* response,
            const Done& done) {
  auto revision = ParseRevision(request);
  if (!revision.ok()) return done(revision.status());
  Change(context, call, request, response, done, [&](core::RunWithSteps stored) {
    return loop::UpdateRun{
        .stored = std::move(stored), .revision = *std::move(revision), .expected_version = request.expected_version()};
  });
}

// --- Reads ----------------------------------------------------------------------------------------

void Get(Context& context, const Call& call, const v1::GetRunRequest& request, v1::GetRunResponse* response,
         const Done& done) {
  auto stored = FindRun(context, call, request.run());
  if (!stored.ok()) return done(stored.status());
  LoadLive(context, {*std::move(stored)},
           [&context, call, response, done](const absl::StatusOr<std::vector<loop::LiveRun>>& runs) {
             if (!runs.ok()) return done(runs.status());
             *response->mutable_run() = View(context, call, runs->front(), Tasks::kAll);
             WithForecast(context, *runs,
                          [&context, call, response, done, run = runs->front().run](const auto& forecast) {
                            AddEstimates(context, call, forecast.get(), run, response->mutable_run());
                            done(absl::OkStatus());
                          });
           });
}

// What a page token of this list is bound to.
std::string ListIdentity(const v1::ListRunsRequest& request) {
  v1::ListRunsRequest filters = request;
  filters.clear_page_size();
  filters.clear_page_token();
  return fmt::format("{}\n{}", kListRuns, DeterministicBytes(filters));
}

absl::StatusOr<store::RunPage> ReadPage(Context& context, const v1::ListRunsRequest& request,
                                        const std::string& identity) {
  TP_ASSIGN_OR_RETURN(const store::RunFilter filter, ParseRunFilter(request));
  TP_ASSIGN_OR_RETURN(const int limit, ParsePageSize(request.page_size()));
  std::optional<int64_t> before;
  if (!request.page_token().empty()) {
    TP_ASSIGN_OR_RETURN(before, context.page_tokens.Read(identity, request.page_token()));
  }
  return context.reader.ListRuns(filter, before, limit);
}

// What gRPC clients take by default is 4 MiB: a page of large runs ends early.
constexpr size_t kMaxPageBytes = size_t{3} << 20;

// Returns after which run the next page begins, where the page had to end early.
std::optional<int64_t> FillPage(Context& context, const Call& call, const std::vector<loop::LiveRun>& runs,
                                const Forecast* forecast, v1::ListRunsResponse* response) {
  size_t bytes = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    v1::Run run = View(context, call, runs[i]);
    for (v1::Step& shown : *run.mutable_steps()) {
      const core::Step& step = runs[i].run.steps[static_cast<size_t>(shown.index() - 1)];
      if (step.state == core::JobState::kQueued) {
        *shown.mutable_estimate() = EstimateOf(call, forecast, runs[i].run, step);
      }
    }
    bytes += run.ByteSizeLong();
    if (i > 0 && bytes > kMaxPageBytes) return runs[i - 1].run.run.n;
    *response->add_runs() = std::move(run);
  }
  return std::nullopt;
}

void List(Context& context, const Call& call, const v1::ListRunsRequest& request, v1::ListRunsResponse* response,
          const Done& done) {
  const std::string identity = ListIdentity(request);
  auto page = ReadPage(context, request, identity);
  if (!page.ok()) return done(page.status());
  const auto fill = [&context, call, response, done, identity, next = page->next_before](
                        const std::vector<loop::LiveRun>& runs, const Forecast* forecast) {
    const std::optional<int64_t> cut = FillPage(context, call, runs, forecast, response);
    const std::optional<int64_t> before = cut ? cut : next;
    if (before) response->set_next_page_token(context.page_tokens.Make(identity, *before));
    done(absl::OkStatus());
  };
  LoadLive(context, std::move(page->runs), [&context, done, fill](absl::StatusOr<std::vector<loop::LiveRun>> loaded) {
    if (!loaded.ok()) return done(loaded.status());
    const auto runs = std::make_shared<const std::vector<loop::LiveRun>>(*std::move(loaded));
    WithForecast(context, *runs, [fill, runs](const auto& forecast) { fill(*runs, forecast.get()); });
  });
}

absl::Status ListEvents(Context& context, const Call& call, const v1::ListRunEventsRequest& request,
                        v1::ListRunEventsResponse* response) {
  TP_ASSIGN_OR_RETURN(const int limit, ParsePageSize(request.page_size()));
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, FindRun(context, call, request.run()));
  TP_ASSIGN_OR_RETURN(const auto events, context.reader.Events(run.run.n, request.after_revision(), limit));
  for (const store::EventRow& event : events) *response->add_events() = ToProto(event);
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* RunService::SubmitRun(grpc::CallbackServerContext* server_context,
                                                const v1::SubmitRunRequest* request, v1::SubmitRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kSubmitRun, [=, this](const Call& call, const Done& done) {
    Submit(context_, call, *request, response, done,
           [&](const v1::SubmitRunRequest& submission) { return ParseWhole(context_, call, submission); });
  });
}

grpc::ServerUnaryReactor* RunService::GetRun(grpc::CallbackServerContext* server_context,
                                             const v1::GetRunRequest* request, v1::GetRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kGetRun,
                  [=, this](const Call& call, const Done& done) { Get(context_, call, *request, response, done); });
}

grpc::ServerUnaryReactor* RunService::ListRuns(grpc::CallbackServerContext* server_context,
                                               const v1::ListRunsRequest* request, v1::ListRunsResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kListRuns,
                  [=, this](const Call& call, const Done& done) { List(context_, call, *request, response, done); });
}

grpc::ServerWriteReactor<v1::WatchRunResponse>* RunService::WatchRun(grpc::CallbackServerContext* server_context,
                                                                     const v1::WatchRunRequest* request) {
  return StartWatchRun(context_, server_context, *request);
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* RunService::WatchEvents(grpc::CallbackServerContext* server_context,
                                                                           const v1::WatchEventsRequest* request) {
  return StartWatchEvents(context_, server_context, *request);
}

grpc::ServerUnaryReactor* RunService::StopRun(grpc::CallbackServerContext* server_context,
                                              const v1::StopRunRequest* request, v1::StopRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kStopRun, [=, this](const Call& call, const Done& done) {
    Steer<loop::StopRun>(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::PauseRun(grpc::CallbackServerContext* server_context,
                                               const v1::PauseRunRequest* request, v1::PauseRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kPauseRun, [=, this](const Call& call, const Done& done) {
    Steer<loop::PauseRun>(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::ResumeRun(grpc::CallbackServerContext* server_context,
                                                const v1::ResumeRunRequest* request, v1::ResumeRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kResumeRun, [=, this](const Call& call, const Done& done) {
    Steer<loop::ResumeRun>(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::RetryRun(grpc::CallbackServerContext* server_context,
                                               const v1::RetryRunRequest* request, v1::RetryRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kRetryRun,
                  [=, this](const Call& call, const Done& done) { Retry(context_, call, *request, response, done); });
}

grpc::ServerUnaryReactor* RunService::SteerRuns(grpc::CallbackServerContext* server_context,
                                                const v1::SteerRunsRequest* request, v1::SteerRunsResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kSteerRuns, [=, this](const Call& call, const Done& done) {
    tp::api::SteerRuns(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::UpdateRun(grpc::CallbackServerContext* server_context,
                                                const v1::UpdateRunRequest* request, v1::UpdateRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kUpdateRun,
                  [=, this](const Call& call, const Done& done) { Update(context_, call, *request, response, done); });
}

grpc::ServerUnaryReactor* RunService::CloneRun(grpc::CallbackServerContext* server_context,
                                               const v1::CloneRunRequest* request, v1::CloneRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kCloneRun, [=, this](const Call& call, const Done& done) {
    Submit(context_, call, *request, response, done,
           [&](const v1::CloneRunRequest& clone) { return CloneOf(context_, call, clone); });
  });
}

grpc::ServerUnaryReactor* RunService::RemoveRun(grpc::CallbackServerContext* server_context,
                                                const v1::RemoveRunRequest* request, v1::RemoveRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kRemoveRun, [=, this](const Call& call, const Done& done) {
    Steer<loop::RemoveRun>(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::ExplainRun(grpc::CallbackServerContext* server_context,
                                                 const v1::ExplainRunRequest* request,
                                                 v1::ExplainRunResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kExplainRun, [=, this](const Call& call, const Done& done) {
    tp::api::ExplainRun(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::ListQueue(grpc::CallbackServerContext* server_context,
                                                const v1::ListQueueRequest* request, v1::ListQueueResponse* response) {
  return RunUnary(context_, context_.calls, server_context, kListQueue, [=, this](const Call& call, const Done& done) {
    tp::api::ListQueue(context_, call, *request, response, done);
  });
}

grpc::ServerUnaryReactor* RunService::ListRunEvents(grpc::CallbackServerContext* server_context,
                                                    const v1::ListRunEventsRequest* request,
                                                    v1::ListRunEventsResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kListRunEvents,
                      [=, this](const Call& call) { return ListEvents(context_, call, *request, response); });
}

grpc::ServerUnaryReactor* RunService::ListResults(grpc::CallbackServerContext* server_context,
                                                  const v1::ListResultsRequest* request,
                                                  v1::ListResultsResponse* response) {
  return RunUnarySync(context_, context_.files, server_context, kListResults,
                      [=, this](const Call& call) { return ListResultFiles(context_, call, *request, response); });
}

grpc::ServerWriteReactor<v1::ReadResultResponse>* RunService::ReadResult(grpc::CallbackServerContext* server_context,
                                                                         const v1::ReadResultRequest* request) {
  return StartReadResult(context_, server_context, *request);
}

grpc::ServerUnaryReactor* RunService::ReadMetrics(grpc::CallbackServerContext* server_context,
                                                  const v1::ReadMetricsRequest* request,
                                                  v1::ReadMetricsResponse* response) {
  return RunUnarySync(context_, context_.files, server_context, kReadMetrics,
                      [=, this](const Call& call) { return ReadRunMetrics(context_, call, *request, response); });
}

}  // namespace tp::api
