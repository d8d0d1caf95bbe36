#include "cli/project_submission.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/status.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr std::string_view kFirstStep = "main";

void PutEnv(const decode::Entries<std::string, std::string>& entries, v1::StepSpec& step) {
  for (const auto& entry : entries) (*step.mutable_env())[entry.key] = entry.value;
}

v1::AfterWhen ToProto(ProjectAfter::When when) {
  switch (when) {
    case ProjectAfter::When::kSuccess:
      return v1::AFTER_WHEN_SUCCESS;
    case ProjectAfter::When::kFailure:
      return v1::AFTER_WHEN_FAILURE;
    case ProjectAfter::When::kAlways:
      return v1::AFTER_WHEN_ALWAYS;
  }
  return v1::AFTER_WHEN_UNSPECIFIED;
}

v1::NoticeEvent ToProto(ProjectNotice::Event event) {
  switch (event) {
    case ProjectNotice::Event::kSucceeded:
      return v1::NOTICE_EVENT_SUCCEEDED;
    case ProjectNotice::Event::kFailed:
      return v1::NOTICE_EVENT_FAILED;
    case ProjectNotice::Event::kStopped:
      return v1::NOTICE_EVENT_STOPPED;
    case ProjectNotice::Event::kPaused:
      return v1::NOTICE_EVENT_PAUSED;
    case ProjectNotice::Event::kIdle:
      return v1::NOTICE_EVENT_IDLE;
  }
  return v1::NOTICE_EVENT_UNSPECIFIED;
}

// The step before where `after` names none.
absl::Status PutAfter(const ProjectAfter& after, const v1::SubmitRunRequest& request, v1::StepSpec& step) {
  const std::string& name = after.step.value.empty() ? request.steps().rbegin()->name() : after.step.value;
  const bool part = std::any_of(request.steps().begin(), request.steps().end(),
                                [&](const v1::StepSpec& earlier) { return earlier.name() == name; });
  if (!part) {
    return InvalidArgument("step {} comes after {} in tp.yaml: write --then {} before it", step.name(), name, name);
  }
  step.mutable_after()->set_step(name);
  step.mutable_after()->set_when(ToProto(after.when));
  return absl::OkStatus();
}

absl::Status FillFromProject(const ProjectFile& project, const ProjectStep& from, const v1::SubmitRunRequest& request,
                             v1::StepSpec& step) {
  step.mutable_argv()->Add(from.command.begin(), from.command.end());
  step.mutable_profiles()->Add(from.profiles.begin(), from.profiles.end());
  PutEnv(project.env, step);
  PutEnv(from.env, step);
  if (!from.image.empty()) step.set_image(from.image);
  if (from.time_limit) *step.mutable_time_limit() = cli::ToProto(*from.time_limit);
  return from.after ? PutAfter(*from.after, request, step) : absl::OkStatus();
}

}  // namespace

SubmitFlags WithProject(const ProjectFile& project, SubmitFlags flags) {
  if (flags.name.empty()) flags.name = project.name;
  if (flags.image.empty()) flags.image = project.image;
  if (flags.profiles.empty()) flags.profiles = project.profiles;
  if (flags.then.empty() && !flags.no_then) {
    for (const auto& step : project.then) flags.then.push_back(step.value);
  }
  std::vector<std::string> labels;
  for (const auto& entry : project.labels) labels.push_back(fmt::format("{}={}", entry.key, entry.value));
  flags.labels.insert(flags.labels.begin(), labels.begin(), labels.end());
  return flags;
}

void AddProjectEnv(const ProjectFile& project, v1::SubmitRunRequest& request) {
  PutEnv(project.env, *request.mutable_steps(0));
}

void AddNotices(const ProjectFile& project, v1::SubmitRunRequest& request) {
  for (const ProjectNotice& notice : project.notify) {
    v1::Notice& to = *request.add_notify();
    to.set_to(notice.to);
    for (const ProjectNotice::Event event : notice.on) to.add_on(ToProto(event));
  }
}

absl::Status AddThenSteps(const ProjectFile& project, const SubmitFlags& flags, v1::SubmitRunRequest& request) {
  if (flags.then.empty()) return absl::OkStatus();
  request.mutable_steps(0)->set_name(std::string(kFirstStep));
  for (const std::string& name : flags.then) {
    v1::StepSpec step;
    step.set_name(name);
    step.set_image(flags.image);
    *step.mutable_explicit_env() = request.steps(0).explicit_env();
    const auto known =
        std::find_if(project.steps.begin(), project.steps.end(), [&](const auto& entry) { return entry.key == name; });
    if (known == project.steps.end()) {
      step.set_recipe(name);
      PutEnv(project.env, step);
    } else {
      TP_RETURN_IF_ERROR(FillFromProject(project, known->value, request, step));
    }
    *request.add_steps() = std::move(step);
  }
  return absl::OkStatus();
}

}  // namespace tp::cli
