#include "cli/follow.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/log_printer.h"
#include "cli/ranks.h"
#include "cli/render/runs.h"
#include "cli/secrets.h"
#include "cli/stream.h"

namespace tp::cli {
namespace {

// A stream that the server ended early, as it does when it shuts down, is opened again after this.
constexpr absl::Duration kReopenDelay = absl::Milliseconds(500);

// Says each change of state once.
class ChangeTeller {
 public:
  explicit ChangeTeller(const Context& context) : context_(context) {}

  void Tell(const v1::Run& run) {
    const std::string line = Line(run);
    if (line == last_) return;
    last_ = line;
    context_.Say(line);
  }

 private:
  static std::string Line(const v1::Run& run) {
    std::string line = fmt::format("{}: {}", run.id(), StateText(run));
    if (!run.reason().empty()) line += fmt::format(" ({})", run.reason());
    if (run.state() == v1::RUN_STATE_PAUSED) line += "; still waiting";
    return line;
  }

  const Context& context_;
  std::string last_;
};

bool ComesBeforeTheEnd(v1::RunState state) {
  return state == v1::RUN_STATE_QUEUED || state == v1::RUN_STATE_SUBMITTED || state == v1::RUN_STATE_PENDING ||
         state == v1::RUN_STATE_RUNNING;
}

// One wait: the run as last seen, and the verdict once there is one.
struct Wait {
  Context& context;
  Client& client;
  std::string selector;
  WaitOptions options;
  v1::Run run;
  std::optional<ExitCode> verdict;
};

absl::StatusOr<StreamEnd> WatchOnce(Wait& wait, ChangeTeller& teller, const StreamOptions& stream_options) {
  return ReadStream<v1::WatchRunResponse>(
      wait.client, stream_options,
      [&](grpc::ClientContext* call) {
        v1::WatchRunRequest request;
        request.set_run(wait.run.id().empty() ? wait.selector : wait.run.id());
        return wait.client.stub<v1::RunService::Stub>().WatchRun(call, request);
      },
      [&](const v1::WatchRunResponse& response) {
        wait.run = response.run();
        MaskSecrets(wait.run);
        wait.verdict = WaitVerdict(wait.run.state(), wait.options.until);
        if (!wait.verdict) teller.Tell(wait.run);
        return !wait.verdict.has_value();
      });
}

WaitResult Ended(const Wait& wait, StreamEnd end) {
  const std::string& id = wait.run.id().empty() ? wait.selector : wait.run.id();
  if (end == StreamEnd::kInterrupted) {
    wait.context.Say(fmt::format("{} goes on; wait again with: tp wait {}", id, id));
    return {wait.run, ExitCode::kInterrupted};
  }
  const std::string state = wait.run.id().empty() ? "" : fmt::format(", which is {}", StateText(wait.run));
  wait.context.Say(fmt::format("gave up waiting for {}{}; it goes on", id, state));
  return {wait.run, ExitCode::kWaitTimeout};
}

}  // namespace

absl::StatusOr<v1::Run> FetchRun(Client& client, const std::string& run) {
  v1::GetRunRequest request;
  request.set_run(run);
  TP_ASSIGN_OR_RETURN(v1::GetRunResponse response, client.Call(&v1::RunService::Stub::GetRun, request));
  MaskSecrets(*response.mutable_run());
  return std::move(*response.mutable_run());
}

std::optional<ExitCode> WaitVerdict(v1::RunState state, std::optional<v1::RunState> until) {
  if (until == state) return ExitCode::kOk;
  if (!IsTerminal(state)) return std::nullopt;
  const ExitCode code = ExitCodeOf(state);
  if (!until || ComesBeforeTheEnd(*until) || code != ExitCode::kOk) return code;
  return ExitCode::kConflict;  // SUCCEEDED, which is not what was waited for
}

absl::StatusOr<WaitResult> WaitForRun(Context& context, const std::string& run, const WaitOptions& options) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  Wait wait{.context = context, .client = *client, .selector = run, .options = options, .run = {}, .verdict = {}};
  Interrupt interrupt;
  ChangeTeller teller(context);
  const StreamOptions stream_options = {
      .deadline = options.deadline,
      .interrupt = &interrupt,
      .on_away = [&] { context.Say("the server is away; waiting for it"); },
  };
  while (!wait.verdict) {
    TP_ASSIGN_OR_RETURN(const StreamEnd end, WatchOnce(wait, teller, stream_options));
    if (end == StreamEnd::kInterrupted || end == StreamEnd::kDeadline) return Ended(wait, end);
    if (!wait.verdict && !interrupt.Sleep(kReopenDelay)) return Ended(wait, StreamEnd::kInterrupted);
  }
  teller.Tell(wait.run);
  return WaitResult{wait.run, *wait.verdict};
}

absl::StatusOr<ExitCode> PrintLog(Context& context, const std::string& run, const LogOptions& options) {
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  LogPrinter printer(STDOUT_FILENO, AreSeveral(options.ranks));
  std::optional<Interrupt> interrupt;
  if (options.follow) interrupt.emplace();
  const StreamOptions stream_options = {
      .interrupt = interrupt ? &*interrupt : nullptr,
      .on_away = [&] { context.Say("the server is away; waiting for it"); },
  };
  absl::Status written;
  TP_ASSIGN_OR_RETURN(const StreamEnd end, ReadStream<v1::ReadLogResponse>(
                                               *client, stream_options,
                                               [&](grpc::ClientContext* call) {
                                                 v1::ReadLogRequest request;
                                                 request.set_run(run);
                                                 request.set_step(options.step);
                                                 request.set_attempt(options.attempt);
                                                 for (const std::string& rank : options.ranks) request.add_ranks(rank);
                                                 request.set_follow(options.follow);
                                                 // A reopened stream is read whole; the printer knows what it has had.
                                                 request.set_tail_lines(printer.started() ? -1 : options.tail_lines);
                                                 request.set_system(options.system);
                                                 return client->stub<v1::LogService::Stub>().ReadLog(call, request);
                                               },
                                               [&](const v1::ReadLogResponse& response) {
                                                 written = printer.Accept(response);
                                                 return written.ok();
                                               }));
  if (written.ok()) written = printer.Finish();
  if (!written.ok()) return written;
  if (end != StreamEnd::kInterrupted) return ExitCode::kOk;
  context.Say(fmt::format("{} goes on; follow it again with: tp logs -f {}", run, run));
  return ExitCode::kInterrupted;
}

}  // namespace tp::cli
