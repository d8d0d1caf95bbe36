#include "api/steer_runs.h"

#include <memory>
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

constexpr int kMaxRuns = 1000;
// The loop decides them in one turn, which nothing else may wait for long: of larger runs (arrays) fewer at a time.
constexpr size_t kStepsPerCommit = 2000;

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

// One call, commit by commit. Lives as long as somebody is to call it back.
class Bulk : public std::enable_shared_from_this<Bulk> {
 public:
  Bulk(Context& context, Call call, const v1::SteerRunsRequest& request, v1::SteerRunsResponse* response, Done done)
      : context_(context),
        call_(std::move(call)),
        request_(request),
        response_(response),
        done_(std::move(done)),
        body_sha256_(BodySha256(call_.method, request)) {}

  // Blocking: reads the store.
  void Go() {
    std::vector<loop::Command> commands;
    std::vector<Asked> asked;
    size_t steps = 0;
    while (response_->runs_size() < request_.runs_size() && steps < kStepsPerCommit) {
      const int index = response_->runs_size();
      v1::SteeredRun* run = response_->add_runs();
      auto stored = Find(index, run);
      if (!stored) continue;
      steps += stored->steps.size();
      asked.push_back({index, stored->run.id()});
      commands.push_back(CommandFor(index, *std::move(stored)));
    }
    if (commands.empty()) return done_(absl::OkStatus());
    context_.loop.Post(std::move(commands),
                       [self = shared_from_this(), asked](const auto& answers) { self->Answered(asked, answers); });
  }

 private:
  struct Asked {
    int index = 0;  // of the response's runs
    std::string run_id;
  };

  // Nothing where `run` has its answer.
  std::optional<core::RunWithSteps> Find(int index, v1::SteeredRun* run) {
    const std::string& selector = request_.runs(index);
    run->set_run(selector);
    const auto answered = FindAnswered(context_, call_, RequestIdOf(request_, index), body_sha256_);
    if (!answered.ok()) {
      Refuse(answered.status(), run);
      return std::nullopt;
    }
    if (*answered) {
      Take(context_, (*answered)->run, (*answered)->note, run);
      return std::nullopt;
    }
    auto stored = FindRun(context_, call_, selector);
    if (stored.ok()) return *std::move(stored);
    Refuse(stored.status(), run);
    return std::nullopt;
  }

  loop::Command CommandFor(int index, core::RunWithSteps stored) {
    loop::Command command = MakeCommand(call_, RequestIdOf(request_, index), body_sha256_,
                                        ActionFor(context_, request_.steering(), std::move(stored)));
    command.method += " " + v1::Steering_Name(request_.steering());  // the audit is to say which
    return command;
  }

  // On a thread of the loop's. What is UNAVAILABLE fails the whole call: it is repeated, and what was taken stays so.
  void Answered(const std::vector<Asked>& asked, const std::vector<absl::StatusOr<loop::Answer>>& answers) {
    for (size_t i = 0; i < asked.size(); ++i) {
      v1::SteeredRun* run = response_->mutable_runs(asked[i].index);
      if (absl::IsUnavailable(answers[i].status())) return done_(answers[i].status());
      if (!answers[i].ok()) {
        Refuse(answers[i].status(), run);
      } else {
        run->set_run_id(asked[i].run_id);
        run->set_note(answers[i]->note);
      }
    }
    context_.calls.Post([self = shared_from_this()] { self->Go(); });
  }

  Context& context_;
  const Call call_;
  const v1::SteerRunsRequest& request_;    // gRPC's, until done_
  v1::SteerRunsResponse* const response_;  // the same
  const Done done_;
  const std::string body_sha256_;
};

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
  std::make_shared<Bulk>(context, call, request, response, done)->Go();
}

}  // namespace tp::api
