#include "api/steer_runs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/errors.h"
#include "api/mutation.h"
#include "api/request.h"
#include "api/run_reader.h"

namespace tp::api {
namespace {

// The loop decides them in one turn, which nothing else may wait for long.
constexpr int kMaxRuns = 1000;

absl::Status CheckForm(const v1::SteerRunsRequest& request) {
  TP_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  if (!v1::Steering_IsValid(request.steering()) || request.steering() == v1::STEERING_UNSPECIFIED) {
    return FieldError("steering", "steering is missing or not known to this server");
  }
  if (request.runs().empty()) return FieldError("runs", "runs is empty: name at least one");
  if (request.runs_size() > kMaxRuns) {
    return FieldError("runs", "{} runs in one call; at most {} are taken: make several calls", request.runs_size(),
                      kMaxRuns);
  }
  return absl::OkStatus();
}

loop::Action ActionFor(Context& context, v1::Steering steering, core::RunWithSteps stored) {
  switch (steering) {
    case v1::STEERING_STOP:
      return loop::StopRun{std::move(stored)};
    case v1::STEERING_PAUSE:
      return loop::PauseRun{std::move(stored)};
    case v1::STEERING_RESUME:
      return loop::ResumeRun{std::move(stored)};
    case v1::STEERING_RETRY:
      return RetryOf(context, std::move(stored));
    case v1::STEERING_HOLD:
    case v1::STEERING_RELEASE:
    case v1::STEERING_UNSPECIFIED:
    case v1::Steering_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Steering_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return loop::UpdateRun{
      .stored = std::move(stored), .revision = {.hold = steering == v1::STEERING_HOLD}, .expected_version = ""};
}

// Each has a request id of its own, so that a repeated call finds those that were taken.
std::string RequestIdOf(const v1::SteerRunsRequest& request, int index) {
  return fmt::format("{}/{}", request.request_id(), index);
}

void Refuse(const absl::Status& status, v1::SteeredRun* run) {
  run->set_code(static_cast<int32_t>(status.code()));
  run->set_message(std::string(Message(status)));
  run->mutable_detail()->set_reason(ReasonOf(status));
  run->mutable_detail()->set_field(FieldOf(status));
}

void Take(Context& context, int64_t n, const std::string& note, v1::SteeredRun* run) {
  const auto stored = context.reader.GetRun(n);
  if (!stored.ok()) return Refuse(stored.status(), run);
  run->set_run_id(stored->run.id());
  run->set_note(note);
}

// What is still to be decided, or nothing where `run` has its answer.
std::optional<loop::Command> CommandFor(Context& context, const Call& call, const v1::SteerRunsRequest& request,
                                        const std::string& body_sha256, int index, v1::SteeredRun* run) {
  const std::string& selector = request.runs(index);
  run->set_run(selector);
  const std::string request_id = RequestIdOf(request, index);
  const auto answered = FindAnswered(context, call, request_id, body_sha256);
  if (!answered.ok()) {
    Refuse(answered.status(), run);
    return std::nullopt;
  }
  if (*answered) {
    Take(context, (*answered)->run, (*answered)->note, run);
    return std::nullopt;
  }
  auto stored = FindRun(context, call, selector);
  if (!stored.ok()) {
    Refuse(stored.status(), run);
    return std::nullopt;
  }
  loop::Command command =
      MakeCommand(call, request_id, body_sha256, ActionFor(context, request.steering(), *std::move(stored)));
  command.method += " " + v1::Steering_Name(request.steering());  // the audit is to say which
  return command;
}

}  // namespace

loop::RetryRun RetryOf(Context& context, core::RunWithSteps stored) {
  loop::RetryRun retry;
  for (const core::RunDependency& dependency : stored.run.after) {
    if (auto other = context.reader.GetRun(dependency.run); other.ok()) retry.after.push_back(*std::move(other));
  }
  retry.stored = std::move(stored);
  return retry;
}

void SteerRuns(Context& context, const Call& call, const v1::SteerRunsRequest& request, v1::SteerRunsResponse* response,
               const Done& done) {
  if (auto status = CheckForm(request); !status.ok()) return done(status);
  const std::string body_sha256 = BodySha256(call.method, request);
  std::vector<loop::Command> commands;
  std::vector<int> asked;  // of response->runs
  for (int i = 0; i < request.runs_size(); ++i) {
    auto command = CommandFor(context, call, request, body_sha256, i, response->add_runs());
    if (!command) continue;
    commands.push_back(*std::move(command));
    asked.push_back(i);
  }
  if (commands.empty()) return done(absl::OkStatus());
  context.loop.Post(std::move(commands),
                    [response, done, asked](const std::vector<absl::StatusOr<loop::Answer>>& answers) {
                      for (size_t i = 0; i < asked.size(); ++i) {
                        v1::SteeredRun* run = response->mutable_runs(asked[i]);
                        if (!answers[i].ok()) {
                          Refuse(answers[i].status(), run);
                        } else {
                          run->set_run_id(answers[i]->run_id);
                          run->set_note(answers[i]->note);
                        }
                      }
                      done(absl::OkStatus());
                    });
}

}  // namespace tp::api
