// Commands of people: who may, what was remembered, and the events they become.
#include <algorithm>

#include <fmt/ranges.h>

#include "base/overloaded.h"
#include "base/status.h"
#include "core/resource.h"
#include "core/revision.h"
#include "loop/guarded.h"
#include "loop/loop.h"
#include "loop/principal.h"

namespace tp::loop {
namespace {

// Answers that the Reader may not show yet are kept here; it has all older ones. Many more than two commits
// hold: a repeated request may have looked there before the first one's commit, and wait here since.
constexpr size_t kRememberedRequests = 100'000;

// An admin pauses a run of their own as its owner, yet lifts whatever holds it.
core::Holder PauserOf(const Principal& who, const core::Run& run) {
  return who.user != run.owner && who.at_least(store::Role::kOperator) ? core::Holder::kAdmin : core::Holder::kOwner;
}
core::Holder LifterOf(const Principal& who) {
  return who.at_least(store::Role::kOperator) ? core::Holder::kAdmin : core::Holder::kOwner;
}

absl::Status CheckSteps(const std::vector<core::StepSpec>& steps) {
  if (steps.empty()) return InvalidArgument("a run needs a command: write it behind --");
  for (const core::StepSpec& step : steps) {
    if (step.argv.empty() || step.argv[0].empty()) return InvalidArgument("a run needs a command: write it behind --");
  }
  return absl::OkStatus();
}

std::vector<core::StepSpec> TasksOf(const core::ArraySpec& array, const core::StepSpec& spec) {
  std::vector<core::StepSpec> tasks(array.indices.size(), spec);
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].name = fmt::format("task-{}", array.indices[i]);
    tasks[i].array_index = array.indices[i];
  }
  return tasks;
}

}  // namespace

void Loop::TakeCommand(CommandMessage& message) {
  // Everybody else has it already: it counts here too, whatever becomes of the request.
  if (const auto* reload = std::get_if<ReloadRegistry>(&message.command.action)) TakeRegistry(reload->registry);
  absl::StatusOr<Answer> answer = CarryOnce(message.command);
  if (answer.ok()) DescribeIfLive(*answer);
  ReplyLater(std::move(message.reply), std::move(answer));
}

void Loop::TakeCommands(CommandsMessage& message) {
  std::vector<absl::StatusOr<Answer>> answers;
  answers.reserve(message.commands.size());
  for (const Command& command : message.commands) answers.push_back(CarryOnce(command));
  batch_.leaving.push_back(
      [reply = std::move(message.reply), answers = std::move(answers)]() mutable { reply(std::move(answers)); });
}

absl::StatusOr<Answer> Loop::CarryOnce(const Command& command) {
  if (auto remembered = Remembered(command)) return *std::move(remembered);
  return Guarded([&] { return Carry(command); });
}

void Loop::DescribeIfLive(Answer& answer) const {
  if (const auto run = runs_.find(answer.run); run != runs_.end()) answer.live = Describe(run->second);
}

void Loop::TakeDryRun(DryRunMessage& message) {
  ReplyLater(std::move(message.reply), Guarded([&] { return Preview(message.dry_run); }));
}

void Loop::ReplyLater(Reply reply, absl::StatusOr<Answer> answer) {
  batch_.leaving.push_back(
      [reply = std::move(reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
}

std::optional<absl::StatusOr<Answer>> Loop::Remembered(const Command& command) const {
  const auto found = requests_.find({command.who.user, command.request_id});
  if (found == requests_.end()) return std::nullopt;
  const store::RequestRow& row = found->second;
  if (row.body_sha256 != command.body_sha256 || row.method != command.method) {
    return absl::StatusOr<Answer>(Error(absl::StatusCode::kAlreadyExists,
                                        "request id {} was used for another request: make a new one",
                                        command.request_id));
  }
  Answer answer;
  answer.run = row.run;
  answer.note = row.note;
  if (auto run = runs_.find(row.run); run != runs_.end()) answer.run_id = run->second.run.id();
  return absl::StatusOr<Answer>(std::move(answer));
}

void Loop::Remember(const Command& command, const Answer& answer) {
  store::RequestRow row;
  row.principal = command.who.user;
  row.request_id = command.request_id;
  row.method = command.method;
  row.body_sha256 = command.body_sha256;
  row.run = answer.run;
  row.note = answer.note;
  const auto [known, added] = requests_.insert_or_assign({row.principal, row.request_id}, row);
  if (added) request_order_.push_back(known);
  if (request_order_.size() > kRememberedRequests) {
    requests_.erase(request_order_.front());
    request_order_.pop_front();
  }
  batch_.txn.requests.push_back(std::move(row));
  batch_.changed = true;
}

void Loop::Audit(const Command& command, int64_t run, std::string detail) {
  store::AuditRow row;
  row.at = now_;
  row.principal = command.who.user;
  row.method = command.method;
  row.run = run;
  row.detail = std::move(detail);
  row.revision = meta_.revision;
  batch_.txn.audit.push_back(std::move(row));
  batch_.changed = true;
}

absl::StatusOr<Answer> Loop::Carry(const Command& command) {
  return std::visit(
      Overloaded{
          [&](const SubmitRun& submit) { return Submit(command, submit); },
          [&](const StopRun& stop) {
            return Steer(command, stop.stored, [](const core::RunWithSteps&) { return core::StopRequested{}; });
          },
          [&](const PauseRun& pause) {
            return Steer(command, pause.stored, [&](const core::RunWithSteps& run) {
              return core::PauseRequested{PauserOf(command.who, run.run), settings_.policy.pause_grace};
            });
          },
          [&](const ResumeRun& resume) {
            return Steer(command, resume.stored, [&](const core::RunWithSteps& run) {
              return core::ResumeRequested{LifterOf(command.who), run.run.snapshot_available};
            });
          },
          [&](const RetryRun& retry) { return Retry(command, retry); },
          [&](const UpdateRun& update) { return Update(command, update); },
          [&](const RemoveRun& remove) { return Remove(command, remove); },
          [&](const AddSnapshot& add) -> absl::StatusOr<Answer> {
            batch_.txn.snapshots.push_back(add.snapshot);
            Answer answer;
            answer.note = add.snapshot.id;
            Remember(command, answer);
            Audit(command, 0, "snapshot " + add.snapshot.id);
            return answer;
          },
          [&](const ReloadRegistry& reload) -> absl::StatusOr<Answer> {
            Answer answer;
            answer.note = reload.answer;
            Remember(command, answer);
            Audit(command, 0, reload.detail);
            return answer;
          },
          [&](const SetQuota& set) { return ChangeRules(command, EditOf(command.who, set)); },
          [&](const RemoveQuotaRule& remove) { return ChangeRules(command, EditOf(command.who, remove)); },
          [&](const HoldWindowOpen& hold) { return ChangeRules(command, EditOf(command.who, hold)); },
          [&](const MarkNode& mark) { return Mark(command, mark); },
          [&](const ClearNode& clear) { return Clear(command, clear); },
          [&](const SweepOrphans& sweep) { return Sweep(command, sweep); },
      },
      command.action);
}

// `note`: what the user is told of it.
absl::StatusOr<core::RunWithSteps> Loop::NewRun(const Principal& who, const SubmitRun& submit,
                                                std::string* note) const {
  if (!who.at_least(store::Role::kUser)) {
    return Error(absl::StatusCode::kPermissionDenied, "{} may look but not submit: ask an admin for the role user",
                 who.user);
  }
  TP_RETURN_IF_ERROR(CheckSteps(submit.steps));
  core::RunWithSteps run;
  run.run.n = meta_.next_run;
  run.run.slug = core::MakeSlug(submit.name);
  run.run.owner = who.user;
  run.run.project = submit.project;
  run.run.snapshot_id = submit.snapshot_id;
  run.run.labels = submit.labels;
  run.run.notify = submit.notify;
  if (submit.priority) {
    TP_RETURN_IF_ERROR(core::CheckPriority(*submit.priority, run.run.priority, ReviserOf(who, run.run)));
    run.run.priority = *submit.priority;
  }
  run.run.created_at = now_;
  TP_ASSIGN_OR_RETURN(run.run.after, DependenciesOf(submit.after));
  std::vector<std::string> notes;
  for (const core::StepSpec& spec : submit.steps) TP_RETURN_IF_ERROR(CheckShape(spec, notes));
  for (const core::StepSpec& spec : submit.array ? TasksOf(*submit.array, submit.steps.front()) : submit.steps) {
    core::Step& step = run.steps.emplace_back();
    step.ref = {run.run.n, static_cast<int32_t>(run.steps.size()) - 1};
    step.spec = spec;
    step.created_at = now_;
    step.entered_at = now_;
    step.hold.owner = submit.hold;
  }
  if (submit.array) run.run.array_limit = submit.array->limit;
  if (const std::string never = core::WhyNever(run, run.steps.front()); !never.empty()) {
    return FailedPrecondition("{}: submit it with --after {}:always, or once that run was retried", never,
                              run.run.after.front().id);
  }
  *note = fmt::format("{}", fmt::join(notes, "\n"));
  return run;
}

absl::Status Loop::CheckShape(const core::StepSpec& spec, std::vector<std::string>& notes) const {
  TP_ASSIGN_OR_RETURN(const core::ResolvedShape shape, core::ResolveShape(*registry_, spec.profiles));
  notes.insert(notes.end(), shape.notes.begin(), shape.notes.end());
  for (const core::PoolShape& pool : shape.pools) {
    TP_RETURN_IF_ERROR(core::MergeEnv(spec, pool, &notes).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> Loop::Preview(const DryRun& dry_run) const {
  Answer answer;
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, NewRun(dry_run.who, dry_run.submit, &answer.note));
  answer.run_id = run.run.id();
  answer.live = Describe(run);
  return answer;
}

absl::StatusOr<Answer> Loop::Submit(const Command& command, const SubmitRun& submit) {
  Answer answer;
  TP_ASSIGN_OR_RETURN(core::RunWithSteps run, NewRun(command.who, submit, &answer.note));
  answer.run_id = run.run.id();
  answer.run = run.run.n;
  meta_.next_run += 1;
  const core::RunWithSteps& kept = runs_.emplace(run.run.n, std::move(run)).first->second;
  IndexDependencies(kept);
  batch_.runs.insert(kept.run.n);
  for (const core::Step& step : kept.steps) {
    batch_.steps.insert(step.ref);
    Reindex(kept, step);
    Log(step, "submitted", step.state, step.state, "");
  }
  Remember(command, answer);
  const std::string origin = submit.clone_of.empty() ? "" : fmt::format(" as a clone of {}", submit.clone_of);
  Audit(command, kept.run.n, fmt::format("submitted {}{}", kept.run.id(), origin));
  return answer;
}

absl::StatusOr<Answer> Loop::Steer(const Command& command, const core::RunWithSteps& stored,
                                   const std::function<core::Event(const core::RunWithSteps&)>& make_event) {
  TP_RETURN_IF_ERROR(CheckStored(stored));
  const auto live = runs_.find(stored.run.n);
  const core::RunWithSteps& run = live != runs_.end() ? live->second : stored;
  TP_RETURN_IF_ERROR(CheckMayChange(command.who, run.run));
  const core::Event event = make_event(run);
  Answer answer;
  answer.run = run.run.n;
  answer.run_id = run.run.id();
  absl::Status refused;
  bool took = false;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const core::Step& step = run.steps[i];
    absl::Status status;
    if (live != runs_.end()) {
      if (core::IsTerminal(step.state) && run.steps.size() > 1) continue;
      status = ApplyTo(step.ref, event, &answer.note);
    } else {
      status = ApplyToOver(step, event, &answer.note);
    }
    if (status.ok()) took = true;
    refused.Update(status);
  }
  if (!took && !refused.ok()) return refused;
  Remember(command, answer);
  Audit(command, answer.run, answer.note);
  return answer;
}

// A run that is over and stays so: only the answer is of interest.
absl::Status Loop::ApplyToOver(const core::Step& step, const core::Event& event, std::string* note) const {
  TP_ASSIGN_OR_RETURN(const core::Transition transition,
                      core::Apply(*settings_.table, step, event, now_, settings_.policy));
  CopyNote(transition.taken, note);
  return absl::OkStatus();
}

absl::StatusOr<Answer> Loop::Retry(const Command& command, const RetryRun& retry) {
  const core::RunWithSteps& stored = retry.stored;
  TP_RETURN_IF_ERROR(CheckMayChange(command.who, stored.run));
  TP_RETURN_IF_ERROR(CheckStored(stored));
  if (stored.run.removed_at) return core::RemovedError(stored.run);
  const bool was_live = runs_.contains(stored.run.n);
  core::RunWithSteps& run = runs_.emplace(stored.run.n, stored).first->second;
  IndexDependencies(run);
  if (absl::Status status = was_live ? absl::OkStatus() : LookAgain(run, retry.after); !status.ok()) {
    Drop(run);
    return status;
  }
  const core::RetryRequested event{run.run.snapshot_available};
  Answer answer;
  answer.run = run.run.n;
  answer.run_id = run.run.id();
  absl::Status refused;
  bool took = false;
  // A step that succeeded stays as it is, and refuses where the whole run did.
  const bool succeeded = core::RollUp(run.steps) == core::RunWord::kSucceeded;
  for (core::Step& step : run.steps) {
    if ((step.state == core::JobState::kSucceeded) != succeeded) continue;
    absl::StatusOr<core::ResolvedShape> shape = core::ResolveShape(*registry_, step.spec.profiles);
    absl::Status status = shape.ok() ? ApplyTo(step.ref, event, &answer.note)
                                     : FailedPrecondition("its shape is no longer valid: {}", Message(shape.status()));
    if (status.ok()) took = true;
    refused.Update(status);
  }
  if (!took) {
    if (!was_live) Drop(run);
    return refused;
  }
  if (!was_live && !run.run.after.empty()) batch_.runs.insert(run.run.n);  // what LookAgain found
  AfterStepEnded(run);  // a step whose turn cannot come was queued with the others
  Remember(command, answer);
  Audit(command, answer.run, "retried " + answer.run_id);
  return answer;
}

// Of a run that was only looked at.
void Loop::Drop(const core::RunWithSteps& run) {
  ForgetDependencies(run);
  runs_.erase(run.run.n);
}

}  // namespace tp::loop
