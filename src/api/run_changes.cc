#include "api/run_changes.h"

#include <string>
#include <string_view>

#include "api/errors.h"
#include "api/request.h"
#include "core/array.h"

namespace tp::api {
namespace {

// A submission of nothing but what is to be different, so that one set of rules serves both. A command
// has to be there.
template <typename Request>
v1::SubmitRunRequest AsSubmission(const Request& request) {
  v1::SubmitRunRequest submission;
  submission.set_name(request.name());
  *submission.mutable_labels() = request.labels();
  v1::StepSpec& step = *submission.add_steps();
  step.add_argv("unchanged");
  *step.mutable_profiles() = request.profiles();
  if (request.has_time_limit()) *step.mutable_time_limit() = request.time_limit();
  return submission;
}

absl::Status TakeField(const std::string& path, const v1::UpdateRunRequest& request, const loop::SubmitRun& parsed,
                       core::Revision* revision) {
  const core::StepSpec& step = parsed.steps.front();
  if (path == "name") {
    if (request.name().empty()) return FieldError("name", "a run's name can't be empty");
    revision->name = parsed.name;
  } else if (path == "labels") {
    revision->labels = parsed.labels;
  } else if (path == "priority") {
    revision->priority = request.priority();
  } else if (path == "hold") {
    revision->hold = request.hold();
  } else if (path == "profiles") {
    revision->profiles = step.profiles;
  } else if (path == "time_limit") {
    revision->time_limit = step.time_limit;
  } else {
    return FieldError("update_mask", "{} can't be updated: name, labels, priority, hold, profiles and time_limit can",
                      path);
  }
  return absl::OkStatus();
}

absl::Status CheckSnapshotKept(const core::Run& run) {
  if (run.snapshot_available) return absl::OkStatus();
  return WithReason(FailedPrecondition("the snapshot of {} is gone: submit its working directory again", run.id()),
                    "SNAPSHOT_GONE");
}

void Override(const v1::CloneRunRequest& request, const core::StepSpec& other, core::StepSpec* step) {
  if (request.argv_size() > 0) step->argv = other.argv;
  if (request.profiles_size() > 0) step->profiles = other.profiles;
  for (const auto& [name, value] : other.explicit_env) step->explicit_env[name] = value;
  if (!request.image().empty()) step->image = other.image;
  if (request.has_time_limit()) step->time_limit = other.time_limit;
}

// What its submission said; of an array the one command, and the array in `clone`.
std::vector<core::StepSpec> SpecsOf(const core::RunWithSteps& original, loop::SubmitRun* clone) {
  std::vector<core::StepSpec> specs;
  if (core::IsArray(original)) {
    clone->array.emplace().limit = original.run.array_limit;
    for (const core::Step& task : original.steps) clone->array->indices.push_back(task.spec.array_index.value_or(0));
    specs.push_back(original.steps.front().spec);
    specs.front().array_index.reset();
    return specs;
  }
  for (const core::Step& step : original.steps) specs.push_back(step.spec);
  return specs;
}

bool OverridesStep(const v1::CloneRunRequest& request) {
  return request.argv_size() > 0 || request.profiles_size() > 0 || request.explicit_env_size() > 0 ||
         !request.image().empty() || request.has_time_limit();
}

}  // namespace

absl::StatusOr<core::Revision> ParseRevision(const v1::UpdateRunRequest& request) {
  if (request.update_mask().paths().empty()) {
    return FieldError("update_mask", "update_mask is empty: say what is to be changed");
  }
  TP_ASSIGN_OR_RETURN(const loop::SubmitRun parsed, ParseSubmit(AsSubmission(request)));
  core::Revision revision;
  for (const std::string& path : request.update_mask().paths()) {
    TP_RETURN_IF_ERROR(TakeField(path, request, parsed, &revision));
  }
  if (request.step() < 0) return FieldError("step", "steps are counted from 1");
  if (request.step() > 0) revision.step = request.step() - 1;
  return revision;
}

absl::StatusOr<loop::SubmitRun> ParseClone(const v1::CloneRunRequest& request, const core::RunWithSteps& original) {
  v1::SubmitRunRequest overrides = AsSubmission(request);
  overrides.set_project(request.project());
  v1::StepSpec& step = *overrides.mutable_steps(0);
  if (request.argv_size() > 0) *step.mutable_argv() = request.argv();
  *step.mutable_explicit_env() = request.explicit_env();
  step.set_image(request.image());
  if (request.has_priority()) overrides.set_priority(request.priority());
  TP_ASSIGN_OR_RETURN(loop::SubmitRun clone, ParseSubmit(overrides));
  if (OverridesStep(request) && original.steps.size() > 1 && !core::IsArray(original)) {
    return FieldError("run", "{} has {} steps: their commands, hardware and environment are cloned as they are",
                      original.run.id(), original.steps.size());
  }
  TP_RETURN_IF_ERROR(CheckSnapshotKept(original.run));
  const core::StepSpec override_spec = clone.steps.front();
  clone.steps.clear();
  for (const core::StepSpec& kept : SpecsOf(original, &clone)) {
    Override(request, override_spec, &clone.steps.emplace_back(kept));
  }
  if (request.name().empty()) clone.name = original.run.slug;
  if (request.project().empty()) clone.project = original.run.project;
  clone.labels.insert(original.run.labels.begin(), original.run.labels.end());
  if (!clone.priority && original.run.priority < core::kDefaultPriority) clone.priority = original.run.priority;
  clone.notify = original.run.notify;
  clone.snapshot_id = original.run.snapshot_id;
  clone.clone_of = original.run.id();
  return clone;
}

}  // namespace tp::api
