// tp clone, update: a run once more, and a run changed.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/render/json.h"
#include "cli/render/plan.h"
#include "cli/render/runs.h"
#include "cli/render/time.h"
#include "cli/secrets.h"
#include "cli/submission.h"

namespace tp::cli {
namespace {

struct CloneFlags {
  std::string run;
  SubmitFlags overrides;
  bool dry_run = false;
};

// The parser of tp submit reads what is to be different; only what was said goes into the request.
absl::StatusOr<v1::CloneRunRequest> BuildClone(const CloneFlags& flags, const std::vector<std::string>& argv) {
  const std::vector<std::string> unchanged = {"unchanged"};
  TP_ASSIGN_OR_RETURN(const v1::SubmitRunRequest overrides,
                      BuildSubmission(flags.overrides, argv.empty() ? unchanged : argv));
  const v1::StepSpec& step = overrides.steps(0);
  v1::CloneRunRequest request;
  request.set_run(flags.run);
  request.set_name(flags.overrides.name);
  request.set_project(overrides.project());
  *request.mutable_labels() = overrides.labels();
  if (overrides.has_priority()) request.set_priority(overrides.priority());
  if (!argv.empty()) *request.mutable_argv() = step.argv();
  *request.mutable_profiles() = step.profiles();
  *request.mutable_explicit_env() = step.explicit_env();
  request.set_image(step.image());
  if (step.has_time_limit()) *request.mutable_time_limit() = step.time_limit();
  request.set_dry_run(flags.dry_run);
  return request;
}

absl::StatusOr<ExitCode> Clone(Context& context, const CloneFlags& flags) {
  TP_ASSIGN_OR_RETURN(v1::CloneRunRequest request, BuildClone(flags, context.command));
  if (!flags.dry_run) request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_ASSIGN_OR_RETURN(v1::CloneRunResponse response, client->Call(&v1::RunService::Stub::CloneRun, request));
  MaskSecrets(*response.mutable_run());
  Answer answer;
  answer.table = [&](bool) {
    if (!flags.dry_run) return response.run().id() + "\n";
    return PlanPage(response.run(), response.notes(), context.terminal(), absl::Now()) +
           LaunchPlan(response.plan(), context.terminal());
  };
  answer.fill = [&](Json& document) {
    document["dry_run"] = flags.dry_run;
    document["run"] = ToJson(response.run());
    document["notes"] = ToJson(response)["notes"];
    if (flags.dry_run) document["plan"] = ToJson(response)["plan"];
  };
  answer.names = flags.dry_run ? std::vector<std::string>() : std::vector<std::string>{response.run().id()};
  if (flags.dry_run) context.Say("nothing was created");
  if (!flags.dry_run) {
    for (const std::string& note : response.notes()) context.Say(note);
  }
  return Show(context, answer);
}

void AddClone(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("clone", "A new run of the same command, environment, hardware and files");
  command->footer(
      "What is given is different in the new run, all else as in RUN: tp clone 42 --profile h200:8 --env LR=0.01\n"
      "Another command goes behind --: tp clone 42 -- python3 eval.py");
  auto flags = std::make_shared<CloneFlags>();
  SubmitFlags& overrides = flags->overrides;
  command->add_option("RUN", flags->run, "42, train-42 or @last")->required();
  command->add_option("--profile", overrides.profiles, "Hardware: [ROLE[,ROLE...]=]PROFILE[:CARDS]; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--name", overrides.name, "Name of the new run");
  command->add_option("--env", overrides.environment, "Set or replace NAME=VALUE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--image", overrides.image, "Container image");
  command->add_option("--time-limit", overrides.time_limit, "End it after so much running time (90m, 12h, 2d)");
  command->add_option("--label", overrides.labels, "Set or replace key=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--priority", overrides.priority, "0 to 100 (default: 50)");
  command->add_option("--project", overrides.project, "Project that it belongs to");
  command->add_flag("--dry-run", flags->dry_run, "Show what would run; create nothing");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return Clone(c, *flags); }; });
}

struct UpdateFlags {
  std::string run;
  std::vector<std::string> profiles;
  std::vector<std::string> labels;  // `key=value` sets, `key-` removes
  std::string name;
  std::string time_limit;
  std::optional<int32_t> priority;
  std::optional<int32_t> step;
  bool hold = false;
  bool release = false;
  std::string expected_version;
};

constexpr const char* kNoLimit = "none";

absl::Status ApplyLabels(const std::vector<std::string>& changes,
                         google::protobuf::Map<std::string, std::string>& labels) {
  std::vector<std::string> set;
  for (const std::string& change : changes) {
    const bool removes = change.find('=') == std::string::npos && !change.empty() && change.back() == '-';
    if (removes) {
      labels.erase(change.substr(0, change.size() - 1));
    } else {
      set.push_back(change);
    }
  }
  return ParseLabels(set, labels);
}

absl::StatusOr<v1::UpdateRunRequest> BuildUpdate(const UpdateFlags& flags) {
  v1::UpdateRunRequest request;
  request.set_run(flags.run);
  request.set_expected_version(flags.expected_version);
  const auto change = [&request](const char* field) { request.mutable_update_mask()->add_paths(field); };
  if (!flags.profiles.empty()) {
    change("profiles");
    request.mutable_profiles()->Assign(flags.profiles.begin(), flags.profiles.end());
  }
  if (!flags.time_limit.empty()) change("time_limit");
  if (!flags.time_limit.empty() && flags.time_limit != kNoLimit) {
    TP_ASSIGN_OR_RETURN(const absl::Duration limit, ParseTimeSpan(flags.time_limit, "--time-limit"));
    *request.mutable_time_limit() = ToProto(limit);
  }
  if (!flags.name.empty()) change("name");
  request.set_name(flags.name);
  if (flags.priority) change("priority");
  request.set_priority(flags.priority.value_or(0));
  if (flags.hold || flags.release) change("hold");
  request.set_hold(flags.hold);
  request.set_step(flags.step.value_or(0));
  if (!flags.labels.empty()) change("labels");
  if (request.update_mask().paths().empty()) {
    return InvalidArgument("nothing to change: see tp update --help for what can be");
  }
  return request;
}

// Labels are replaced as a whole: they are read first, and the server refuses if they changed meanwhile.
absl::Status FillLabels(Client& client, const UpdateFlags& flags, v1::UpdateRunRequest& request) {
  if (flags.labels.empty()) return absl::OkStatus();
  TP_ASSIGN_OR_RETURN(const v1::Run run, FetchRun(client, flags.run));
  *request.mutable_labels() = run.labels();
  if (flags.expected_version.empty()) request.set_expected_version(run.version());
  return ApplyLabels(flags.labels, *request.mutable_labels());
}

absl::StatusOr<ExitCode> Update(Context& context, const UpdateFlags& flags) {
  TP_ASSIGN_OR_RETURN(v1::UpdateRunRequest request, BuildUpdate(flags));
  TP_ASSIGN_OR_RETURN(Client* const client, context.Connect());
  TP_RETURN_IF_ERROR(FillLabels(*client, flags, request));
  request.set_request_id(NewRequestId());
  TP_ASSIGN_OR_RETURN(v1::UpdateRunResponse response, client->Call(&v1::RunService::Stub::UpdateRun, request));
  MaskSecrets(*response.mutable_run());
  Answer answer;
  answer.table = [&](bool) { return response.run().id() + "\n"; };
  answer.fill = [&](Json& document) {
    document["run"] = ToJson(response.run());
    document["note"] = response.note();
  };
  answer.names = std::vector<std::string>{response.run().id()};
  context.Say(fmt::format("{}: {}", response.run().id(), response.note()));
  return Show(context, answer);
}

void AddUpdate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("update", "Change a run's hardware, priority, labels, time limit or name");
  command->footer(
      "Hardware and time limit: of a run that waits, is PAUSED, or is over and will be retried. Owners lower the\n"
      "priority; operators raise it above the default. The name: before the first launch.");
  auto flags = std::make_shared<UpdateFlags>();
  command->add_option("RUN", flags->run, "42, train-42 or @last")->required();
  command->add_option("--profile", flags->profiles, "Hardware: [ROLE[,ROLE...]=]PROFILE[:CARDS]; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--priority", flags->priority, "0 to 100 (default: 50)");
  command->add_option("--label", flags->labels, "key=value sets a label, key- removes it; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--time-limit", flags->time_limit, "Running time (90m, 12h, 2d), or none");
  command->add_option("--name", flags->name, "Another name");
  command->add_option("--step", flags->step, "Which step of a pipeline, counted from 1")->check(CLI::PositiveNumber);
  command->add_flag("--hold", flags->hold, "As tp hold");
  command->add_flag("--release", flags->release, "As tp release")->excludes("--hold");
  command->add_option("--if-version", flags->expected_version, "Only if the run's version is still this one");
  command->callback([&context, flags] { context.action = [flags](Context& c) { return Update(c, *flags); }; });
}

}  // namespace

void AddChangeCommands(CLI::App& app, Context& context) {
  AddClone(app, context);
  AddUpdate(app, context);
}

}  // namespace tp::cli
