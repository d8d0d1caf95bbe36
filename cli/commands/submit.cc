// tp submit: the working directory and a command become a run.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/human_bytes.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/list_files.h"
#include "cli/progress.h"
#include "cli/project_file.h"
#include "cli/project_submission.h"
#include "cli/render/plan.h"
#include "cli/render/runs.h"
#include "cli/secrets.h"
#include "cli/submission.h"
#include "cli/upload.h"
#include "cli/version_skew.h"

namespace tp::cli {
namespace {

struct SubmitOptions {
  SubmitFlags flags;
  bool dry_run = false;
  bool list_files = false;
  bool wait = false;
  bool follow = false;
};

Json NotesToJson(const v1::SubmitRunResponse& response) {
  Json notes = Json::array();
  for (const std::string& note : response.notes()) notes.push_back(note);
  return notes;
}

Answer AnswerOf(const Context& context, const v1::SubmitRunResponse& response, bool dry_run) {
  Answer answer;
  answer.table = [&, dry_run](bool) {
    if (!dry_run) return response.run().id() + "\n";
    return PlanPage(response.run(), response.notes(), context.terminal(), absl::Now()) +
           LaunchPlan(response.plan(), context.terminal());
  };
  answer.fill = [&, dry_run](Json& document) {
    document["dry_run"] = dry_run;
    document["run"] = ToJson(response.run());
    document["notes"] = NotesToJson(response);
    if (dry_run) document["plan"] = ToJson(response)["plan"];
  };
  answer.names = dry_run ? std::vector<std::string>() : std::vector<std::string>{response.run().id()};
  return answer;
}

absl::StatusOr<v1::SubmitRunResponse> CallSubmit(Client& client, const v1::SubmitRunRequest& request) {
  TP_ASSIGN_OR_RETURN(v1::SubmitRunResponse response, client.Call(&v1::RunService::Stub::SubmitRun, request));
  MaskSecrets(*response.mutable_run());
  return response;
}

// Nothing is created.
absl::StatusOr<v1::SubmitRunResponse> Plan(Client& client, v1::SubmitRunRequest request) {
  request.set_dry_run(true);
  return CallSubmit(client, request);
}

absl::StatusOr<ExitCode> ShowPlan(const Context& context, Client& client, const v1::SubmitRunResponse& plan,
                                  const std::string& directory) {
  TP_ASSIGN_OR_RETURN(const FileTree tree, ScanForUpload(client, directory));
  context.Say(fmt::format("nothing was created; the directory has {} file(s), {}", tree.files, HumanBytes(tree.bytes)));
  return Show(context, AnswerOf(context, plan, true));
}

absl::StatusOr<ExitCode> ShowFiles(const Context& context, const std::string& directory) {
  TP_ASSIGN_OR_RETURN(const std::string path, ResolveDirectory(directory));
  TP_ASSIGN_OR_RETURN(const FileTree tree, ScanTree(path));
  return Show(context, ListFiles(context, tree));
}

absl::StatusOr<UploadReport> Upload(const Context& context, Client& client, const std::string& directory) {
  Progress progress(!context.globals.quiet);
  return UploadDirectory(client, directory, progress);
}

void Echo(const Context& context, const v1::SubmitRunResponse& response) {
  for (const v1::Step& step : response.run().steps()) {
    const std::string name = response.run().steps_size() > 1 ? step.spec().name() + ": " : "";
    if (!step.shape().empty()) context.Say(name + step.shape());
  }
  for (const std::string& note : response.notes()) context.Say(note);
}

// To the run's end, with its log or without.
absl::StatusOr<ExitCode> Accompany(Context& context, const std::string& run, bool follow) {
  if (follow) {
    LogOptions log;
    log.follow = true;
    TP_ASSIGN_OR_RETURN(const ExitCode code, PrintLog(context, run, log));
    if (code != ExitCode::kOk) return code;
  }
  TP_ASSIGN_OR_RETURN(const WaitResult result, WaitForRun(context, run, {}));
  return result.code;
}

// From the flags, and from tp.yaml what they leave open.
absl::StatusOr<v1::SubmitRunRequest> BuildRequest(const Context& context, const SubmitFlags& flags) {
  TP_ASSIGN_OR_RETURN(const std::optional<ProjectFile> project, ReadProjectFile(flags.directory));
  if (!project) {
    TP_ASSIGN_OR_RETURN(v1::SubmitRunRequest request, BuildSubmission(flags, context.command));
    TP_RETURN_IF_ERROR(AddThenSteps({}, flags, request));
    return request;
  }
  const std::vector<std::string>& argv = context.has_command ? context.command : project->command;
  const SubmitFlags merged = WithProject(*project, flags);
  TP_ASSIGN_OR_RETURN(v1::SubmitRunRequest request, BuildSubmission(merged, argv));
  AddProjectEnv(*project, request);
  AddNotices(*project, request);
  TP_RETURN_IF_ERROR(AddThenSteps(*project, merged, request));
  return request;
}

absl::StatusOr<ExitCode> Submit(Context& context, const SubmitOptions& options) {
  if (options.list_files) return ShowFiles(context, options.flags.directory);
  TP_ASSIGN_OR_RETURN(v1::SubmitRunRequest request, BuildRequest(context, options.flags));
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_RETURN_IF_ERROR(WarnOfVersionSkew(context, *client).status());
  // Also before a submission: what is refused is refused before the directory is packed and sent.
  TP_ASSIGN_OR_RETURN(const v1::SubmitRunResponse plan, Plan(*client, request));
  if (options.dry_run) return ShowPlan(context, *client, plan, options.flags.directory);

  TP_ASSIGN_OR_RETURN(const UploadReport upload, Upload(context, *client, options.flags.directory));
  request.set_snapshot_id(upload.snapshot_id);
  request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(const v1::SubmitRunResponse response, CallSubmit(*client, request));
  TP_ASSIGN_OR_RETURN(const ExitCode code, Show(context, AnswerOf(context, response, false)));
  TP_RETURN_IF_ERROR(context.Flush());
  Echo(context, response);
  if (!options.wait && !options.follow) return code;
  return Accompany(context, response.run().id(), options.follow);
}

}  // namespace

void AddSubmitCommand(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("submit", "Run a command on the cluster: tp submit [flags] -- COMMAND [ARG...]");
  command->footer(
      "The working directory goes along, without .git, __pycache__, venv, .venv, node_modules, *.pyc and what\n"
      ".tpignore lists. "
      "Prints the run's id. Example: tp submit --profile h200:16 --time-limit 12h -- torchrun train.py");
  auto options = std::make_shared<SubmitOptions>();
  SubmitFlags& flags = options->flags;
  command->add_option("--profile", flags.profiles, "Hardware: [ROLE[,ROLE...]=]PROFILE[:CARDS]; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--name", flags.name, "Name of the run (default: what the command runs)");
  command->add_option("--env", flags.environment, "NAME=VALUE, or NAME to pass yours on; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--image", flags.image, "Container image, where the backend uses one");
  command->add_option("--time-limit", flags.time_limit, "End the job after so much running time (90m, 12h, 2d)");
  command
      ->add_option("--then", flags.then,
                   "A step that follows on success: of tp.yaml, or a recipe of the deployment; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--no-then", flags.no_then, "None of the steps that tp.yaml lists under `then`")
      ->excludes("--then");
  command
      ->add_option("--after", flags.after,
                   "RUN has to succeed first; RUN:failure, RUN:always: to fail, to end; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--array", flags.array,
                      "A task for each index, with TP_ARRAY_INDEX: 0-31, 1,3,8-10, 0-31%4 "
                      "for four at once");
  command->add_flag("--hold", flags.hold, "Hold it until tp release");
  command->add_option("--label", flags.labels, "key=value; may be repeated")->allow_extra_args(false);
  command->add_option("--priority", flags.priority, "0 to 100 (default: 50); above it only for operators");
  command->add_option("--project", flags.project, "Project that the run belongs to");
  command->add_option("--dir", flags.directory, "Directory to submit (default: the current one)");
  command->add_flag("--dry-run", options->dry_run, "Show what would run, and what it would wait for; create nothing");
  command->add_flag("--list-files", options->list_files,
                    "Show which files would be sent, and what stays out; send none");
  command->add_flag("--wait", options->wait, "Wait for the end; exit as `tp wait` does");
  command->add_flag("-f,--follow", options->follow, "Print the log until the end; exit as `tp wait` does");
  command->callback([&context, options] { context.action = [options](Context& c) { return Submit(c, *options); }; });
}

}  // namespace tp::cli
