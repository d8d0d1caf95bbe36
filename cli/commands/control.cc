// tp stop, pause, resume, retry, rm, hold, release, wait: steering runs.
#include <algorithm>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/bulk.h"
#include "cli/collect.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/render/runs.h"
#include "cli/render/time.h"
#include "cli/rpc_status.h"
#include "cli/run_list.h"
#include "cli/secrets.h"

namespace tp::cli {
namespace {

struct Steered {
  v1::Run run;
  std::string note;
};

// What became of each run that was named, in their order.
using Outcome = absl::StatusOr<Steered>;
using SteerMany = std::function<std::vector<Outcome>(Client&, const std::vector<std::string>&)>;

// More than a server takes at once are several commits.
constexpr size_t kRunsPerCall = 1000;

absl::StatusOr<Steered> ShownRun(Client& client, const v1::SteeredRun& steered) {
  if (steered.code() != 0) {
    return FromGrpc(
        {static_cast<grpc::StatusCode>(steered.code()), steered.message(), steered.detail().SerializeAsString()});
  }
  v1::GetRunRequest request;
  request.set_run(steered.run_id());
  absl::StatusOr<v1::GetRunResponse> response = client.Call(&v1::RunService::Stub::GetRun, request);
  Steered shown{.run = {}, .note = steered.note()};
  if (response.ok()) shown.run = std::move(*response->mutable_run());
  shown.run.set_id(steered.run_id());  // it was taken, whether it can be looked at or not
  MaskSecrets(shown.run);
  return shown;
}

// In one commit; the same request id in every try of it.
void SteerTogether(Client& client, v1::Steering steering, std::span<const std::string> runs,
                   std::vector<Outcome>& outcomes) {
  v1::SteerRunsRequest request;
  request.set_request_id(NewRequestId());
  request.set_steering(steering);
  request.mutable_runs()->Assign(runs.begin(), runs.end());
  const absl::StatusOr<v1::SteerRunsResponse> response = client.Call(&v1::RunService::Stub::SteerRuns, request);
  if (!response.ok()) {
    outcomes.emplace_back(response.status());
    return;
  }
  for (const v1::SteeredRun& run : response->runs()) outcomes.push_back(ShownRun(client, run));
}

SteerMany Together(v1::Steering steering) {
  return [steering](Client& client, const std::vector<std::string>& runs) {
    std::vector<Outcome> outcomes;
    for (size_t from = 0; from < runs.size(); from += kRunsPerCall) {
      const size_t count = std::min(kRunsPerCall, runs.size() - from);
      SteerTogether(client, steering, std::span(runs).subspan(from, count), outcomes);
    }
    return outcomes;
  };
}

// Files go with each: one after the other.
absl::StatusOr<Steered> Remove(Client& client, const std::string& run) {
  v1::RemoveRunRequest request;
  request.set_request_id(NewRequestId());
  request.set_run(run);
  TP_ASSIGN_OR_RETURN(v1::RemoveRunResponse response, client.Call(&v1::RunService::Stub::RemoveRun, request));
  MaskSecrets(*response.mutable_run());
  return Steered{std::move(*response.mutable_run()), response.note()};
}

std::vector<Outcome> RemoveEach(Client& client, const std::vector<std::string>& runs) {
  return Collect(runs, [&](const std::string& run) { return Remove(client, run); });
}

absl::StatusOr<ExitCode> ShowSteered(const Context& context, const std::vector<Steered>& done) {
  Answer answer;
  const std::vector<std::string> ids = Collect(done, [](const Steered& one) { return one.run.id(); });
  answer.table = [&](bool) { return ids.empty() ? "" : fmt::format("{}\n", fmt::join(ids, "\n")); };
  answer.fill = [&](Json& document) {
    document["runs"] = Json::array();
    for (const Steered& one : done) document["runs"].push_back({{"run", ToJson(one.run)}, {"note", one.note}});
  };
  answer.names = ids;
  return Show(context, answer);
}

// Every run is tried; the exit code is that of the first that was refused.
absl::StatusOr<ExitCode> SteerAll(Context& context, const std::string& verb, const BulkFlags& flags,
                                  const SteerMany& steer) {
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> selectors, SelectRuns(context, verb, flags));
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  std::vector<Steered> done;
  absl::Status first_refusal;
  for (Outcome& outcome : steer(*client, selectors)) {
    if (outcome.ok()) {
      const Steered& one = *outcome;
      context.Say(fmt::format("{}: {}", one.run.id(), one.note.empty() ? StateText(one.run) : one.note));
      done.push_back(*std::move(outcome));
    } else if (first_refusal.ok()) {
      first_refusal = outcome.status();
    } else {
      context.Report(outcome.status());
    }
  }
  const absl::StatusOr<ExitCode> code = ShowSteered(context, done);
  return first_refusal.ok() ? code : first_refusal;
}

void AddSteering(CLI::App& app, Context& context, const char* name, const char* description, SteerMany steer) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(
      "Without RUN: all that match, after a question. Only those are taken that the command can do something with,\n"
      "unless --state says which.");
  auto flags = std::make_shared<BulkFlags>();
  command->add_option("RUN", flags->runs, "Runs: 42, train-42 or @last");
  AddFilterFlags(*command, flags->filter);
  command->add_flag("-y,--yes", flags->yes, "Do not ask");
  command->callback([&context, name, flags, steer = std::move(steer)] {
    context.action = [name, flags, steer](Context& c) { return SteerAll(c, name, *flags, steer); };
  });
}

struct WaitFlags {
  std::vector<std::string> runs;
  std::string until;
  std::string timeout;
};

absl::StatusOr<WaitOptions> ParseWait(const WaitFlags& flags) {
  WaitOptions options;
  if (!flags.until.empty()) {
    TP_ASSIGN_OR_RETURN(options.until, ParseRunState(flags.until, "--until"));
  }
  if (!flags.timeout.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Duration timeout, ParseTimeSpan(flags.timeout, "--timeout"));
    options.deadline = absl::Now() + timeout;
  }
  return options;
}

absl::StatusOr<ExitCode> ShowWaited(const Context& context, const std::vector<WaitResult>& results) {
  Answer answer;
  answer.table = [](bool) { return std::string(); };
  answer.fill = [&](Json& document) {
    document["runs"] = Json::array();
    for (const WaitResult& result : results) document["runs"].push_back(ToJson(result.run));
  };
  answer.names = Collect(results, [](const WaitResult& result) { return result.run.id(); });
  return Show(context, answer);
}

// One after the other; the exit code is the first that is not 0. A timeout or Ctrl-C ends it all.
absl::StatusOr<ExitCode> WaitAll(Context& context, const WaitFlags& flags) {
  TP_ASSIGN_OR_RETURN(const WaitOptions options, ParseWait(flags));
  std::vector<WaitResult> results;
  ExitCode code = ExitCode::kOk;
  for (const std::string& run : flags.runs) {
    TP_ASSIGN_OR_RETURN(results.emplace_back(), WaitForRun(context, run, options));
    const ExitCode last = results.back().code;
    if (code == ExitCode::kOk) code = last;
    if (last == ExitCode::kInterrupted || last == ExitCode::kWaitTimeout) {
      code = last;
      break;
    }
  }
  TP_RETURN_IF_ERROR(ShowWaited(context, results).status());
  return code;
}

void AddWait(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("wait", "Wait for a run's end; the exit code tells it");
  command->footer(
      "Exit codes: 0 SUCCEEDED or the --until state, 1 FAILED, 6 STOPPED, 7 timeout, 8 PARTIAL, 9 the run ended and\n"
      "will not reach the --until state, 130 Ctrl-C (the run goes on). A PAUSED run is waited for.");
  auto flags = std::make_shared<WaitFlags>();
  command->add_option("RUN", flags->runs, "Runs: 42, train-42 or @last")->required();
  command->add_option("--until", flags->until, "Wait for this state instead, e.g. RUNNING");
  command->add_option("--timeout", flags->timeout, "Give up after so long (90s, 2h): exit code 7");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return WaitAll(c, *flags); }; });
}

}  // namespace

void AddControlCommands(CLI::App& app, Context& context) {
  AddSteering(app, context, "stop", "End runs for good; checkpoints and output stay", Together(v1::STEERING_STOP));
  AddSteering(app, context, "pause", "Stop runs for now and free their cards", Together(v1::STEERING_PAUSE));
  AddSteering(app, context, "resume", "Queue paused runs again", Together(v1::STEERING_RESUME));
  AddSteering(app, context, "retry", "Run failed or stopped runs once more, with the same output directory",
              Together(v1::STEERING_RETRY));
  AddSteering(app, context, "rm", "Remove runs that are over: their files go, usage and audit stay", RemoveEach);
  AddSteering(app, context, "hold", "Keep queued runs from starting", Together(v1::STEERING_HOLD));
  AddSteering(app, context, "release", "Let held runs start", Together(v1::STEERING_RELEASE));
  app.get_subcommand("stop")->alias("cancel")->alias("kill");
  AddWait(app, context);
}

}  // namespace tp::cli
