#include "core/revision.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/sha256.h"
#include "base/status.h"
#include "core/array.h"
#include "core/resource.h"

namespace tp::core {
namespace {

constexpr size_t kVersionDigits = 16;

using Sentences = std::vector<std::string>;

absl::Status ReviseName(RunWithSteps& run, const std::string& name, Sentences& done) {
  const std::string slug = MakeSlug(name);
  if (slug == run.run.slug) return absl::OkStatus();
  const bool untouched = std::all_of(run.steps.begin(), run.steps.end(), [](const Step& step) {
    return step.state == JobState::kQueued && step.attempts == 0;
  });
  if (!untouched) {
    return FailedPrecondition("{} has been launched, and its files are kept under its name: it can't be renamed",
                              run.run.id());
  }
  const std::string before = run.run.id();
  run.run.slug = slug;
  done.push_back(fmt::format("{} is now {}", before, run.run.id()));
  return absl::OkStatus();
}

absl::Status RevisePriority(RunWithSteps& run, int32_t priority, const Reviser& by, Sentences& done) {
  if (priority == run.run.priority) return absl::OkStatus();
  TP_RETURN_IF_ERROR(CheckPriority(priority, run.run.priority, by));
  done.push_back(fmt::format("priority {} (was {})", priority, run.run.priority));
  run.run.priority = priority;
  return absl::OkStatus();
}

void ReviseLabels(RunWithSteps& run, const std::map<std::string, std::string>& labels, Sentences& done) {
  if (labels == run.run.labels) return;
  run.run.labels = labels;
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format(" {}={}", key, value);
  done.push_back(labels.empty() ? "no labels" : fmt::format("labels{}", text));
}

absl::Status ReviseHold(RunWithSteps& run, bool hold, const Reviser& by, Sentences& done) {
  if (IsTerminal(RollUp(run.steps))) return FailedPrecondition("{} is over: nothing is left to hold", run.run.id());
  bool changed = false;
  bool held_by_admin = false;
  for (Step& step : run.steps) {
    const Hold before = step.hold;
    if (hold) {
      (by.is_owner ? step.hold.owner : step.hold.admin) = true;
    } else {
      step.hold.owner = false;
      if (by.is_operator) step.hold.admin = false;
    }
    changed = changed || step.hold != before;
    held_by_admin = held_by_admin || step.hold.admin;
  }
  if (changed) done.emplace_back(hold ? "held: it starts after tp release" : "released");
  if (!hold && held_by_admin) done.emplace_back("an admin holds it still");
  return absl::OkStatus();
}

absl::StatusOr<Step*> StepToRevise(RunWithSteps& run, std::optional<int32_t> index) {
  const auto count = static_cast<int32_t>(run.steps.size());
  if (!index && count > 1) return InvalidArgument("{} has {} steps: say which one", run.run.id(), count);
  const int32_t at = index.value_or(0);
  if (at < 0 || at >= count) return NotFound("{} has {} step(s), not {}", run.run.id(), count, at + 1);
  return &run.steps[static_cast<size_t>(at)];
}

// What a launch reads is frozen in its attempt.
absl::Status CheckNotFrozen(const Run& run, const Step& step) {
  if (step.state == JobState::kSucceeded) {
    return FailedPrecondition("{} has SUCCEEDED: tp clone makes a new run of it", run.id());
  }
  if (!step.attempt) return absl::OkStatus();
  return FailedPrecondition("{} is {}, with the shape it was launched with: tp pause it first", run.id(),
                            Name(step.state));
}

absl::Status ReviseProfiles(const Run& run, Step& step, const std::vector<std::string>& profiles,
                            const Registry& registry, Sentences& done) {
  if (profiles == step.spec.profiles) return absl::OkStatus();
  TP_RETURN_IF_ERROR(CheckNotFrozen(run, step));
  StepSpec spec = step.spec;
  spec.profiles = profiles;
  TP_ASSIGN_OR_RETURN(const ResolvedShape shape, ResolveShape(registry, profiles));
  Sentences notes = shape.notes;
  for (const PoolShape& pool : shape.pools) TP_RETURN_IF_ERROR(MergeEnv(spec, pool, &notes).status());
  const auto text = [](const std::vector<std::string>& flags) {
    return flags.empty() ? std::string("cpu") : fmt::format("{}", fmt::join(flags, " "));
  };
  done.push_back(fmt::format("profile {} (was {})", text(profiles), text(step.spec.profiles)));
  done.insert(done.end(), notes.begin(), notes.end());
  step.spec = std::move(spec);
  step.hold.shape.clear();
  return absl::OkStatus();
}

absl::Status ReviseTimeLimit(const Run& run, Step& step, std::optional<absl::Duration> limit, Sentences& done) {
  if (limit == step.spec.time_limit) return absl::OkStatus();
  TP_RETURN_IF_ERROR(CheckNotFrozen(run, step));
  step.spec.time_limit = limit;
  done.push_back(limit ? fmt::format("time limit {}", absl::FormatDuration(*limit)) : "no time limit");
  return absl::OkStatus();
}

// All that are still to be launched; each change is said once.
absl::Status ReviseTasks(RunWithSteps& run, const Revision& revision, const Registry& registry, Sentences& done) {
  bool any = false;
  for (Step& step : run.steps) {
    if (step.attempt || IsTerminal(step.state)) continue;
    Sentences said;
    if (revision.profiles) TP_RETURN_IF_ERROR(ReviseProfiles(run.run, step, *revision.profiles, registry, said));
    if (revision.time_limit) TP_RETURN_IF_ERROR(ReviseTimeLimit(run.run, step, *revision.time_limit, said));
    if (!any) done.insert(done.end(), said.begin(), said.end());
    any = any || !said.empty();
  }
  return absl::OkStatus();
}

absl::Status ReviseStep(RunWithSteps& run, const Revision& revision, const Registry& registry, Sentences& done) {
  if (!revision.step && IsArray(run)) return ReviseTasks(run, revision, registry, done);
  TP_ASSIGN_OR_RETURN(Step* const step, StepToRevise(run, revision.step));
  if (revision.profiles) TP_RETURN_IF_ERROR(ReviseProfiles(run.run, *step, *revision.profiles, registry, done));
  if (revision.time_limit) TP_RETURN_IF_ERROR(ReviseTimeLimit(run.run, *step, *revision.time_limit, done));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPriority(int32_t wanted, int32_t present, const Reviser& by) {
  if (wanted < 0 || wanted > kMaxPriority) {
    return InvalidArgument("priority {}: it lies between 0 and {}, {} being the default", wanted, kMaxPriority,
                           kDefaultPriority);
  }
  if (by.is_operator || wanted <= std::max(present, kDefaultPriority)) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied,
               "priority {}: owners lower it, and raise it up to {}; ask an operator for more", wanted,
               std::max(present, kDefaultPriority));
}

absl::StatusOr<std::vector<std::string>> Revise(RunWithSteps& run, const Revision& revision, const Reviser& by,
                                                const Registry& registry) {
  if (run.run.removed_at) return RemovedError(run.run);
  RunWithSteps changed = run;
  Sentences done;
  if (revision.profiles || revision.time_limit) TP_RETURN_IF_ERROR(ReviseStep(changed, revision, registry, done));
  if (revision.priority) TP_RETURN_IF_ERROR(RevisePriority(changed, *revision.priority, by, done));
  if (revision.labels) ReviseLabels(changed, *revision.labels, done);
  if (revision.hold) TP_RETURN_IF_ERROR(ReviseHold(changed, *revision.hold, by, done));
  if (revision.name) TP_RETURN_IF_ERROR(ReviseName(changed, *revision.name, done));
  run = std::move(changed);
  return done;
}

std::string VersionOf(const RunWithSteps& run) {
  Sha256 digest;
  const auto add = [&digest](std::string_view part) { digest.Update(fmt::format("{}:{},", part.size(), part)); };
  add(run.run.slug);
  add(fmt::format("{} {}", run.run.priority, run.run.removed_at.has_value()));
  for (const auto& [key, value] : run.run.labels) {
    add(key);
    add(value);
  }
  for (const Step& step : run.steps) {
    add(fmt::format("step {} {} {} {}", step.hold.owner, step.hold.admin, step.spec.time_limit.has_value(),
                    absl::ToInt64Milliseconds(step.spec.time_limit.value_or(absl::ZeroDuration()))));
    for (const std::string& profile : step.spec.profiles) add(profile);
  }
  return digest.HexDigest().substr(0, kVersionDigits);
}

absl::Status RemovedError(const Run& run) {
  return FailedPrecondition("{} was removed on {}, and its files with it: tp clone makes a new run of it", run.id(),
                            absl::FormatTime("%Y-%m-%d %H:%M UTC", *run.removed_at, absl::UTCTimeZone()));
}

}  // namespace tp::core
