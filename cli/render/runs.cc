#include "cli/render/runs.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/collect.h"
#include "cli/render/array.h"
#include "cli/render/color.h"
#include "cli/render/enum_word.h"
#include "cli/render/estimate.h"
#include "cli/render/fields.h"
#include "cli/render/gates.h"
#include "cli/render/steps.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr int32_t kDefaultPriority = 50;

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string Pairs(const std::map<std::string, std::string>& sorted) {
  std::string text;
  for (const auto& [key, value] : sorted) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels) {
  return Pairs({labels.begin(), labels.end()});
}

// Which columns there are besides the usual ones.
struct Shown {
  bool wide = false;
  bool estimates = false;  // of starts
};

std::vector<Column> RunColumns(const Shown& shown) {
  std::vector<Column> columns = {{"ID"}, {"STATE"}, {"REASON", Align::kLeft, true}, {"PROFILE"}};
  if (shown.estimates) columns.push_back({"EST START", Align::kLeft, false, 4});
  columns.insert(columns.end(), {{"BACKEND", Align::kLeft, false, 1},
                                 {"AGE", Align::kRight},
                                 {"GPU-TIME", Align::kRight, false, 2},
                                 {"RETRY", Align::kRight, false, 3}});
  if (shown.wide) {
    columns.insert(columns.end(), {{"USER", Align::kLeft, false, 4},
                                   {"PROJECT", Align::kLeft, false, 6},
                                   {"PRIORITY", Align::kRight, false, 5},
                                   {"NODES", Align::kLeft, true, 8},
                                   {"LABELS", Align::kLeft, true, 7}});
  }
  return columns;
}

std::string NodeNames(const v1::Step& step) {
  // Of the live attempt, else of the last one.
  const bool over = !step.has_attempt() && step.past_attempts_size() > 0;
  const auto& nodes = (over ? *step.past_attempts().rbegin() : step.attempt()).nodes();
  return Join({nodes.begin(), nodes.end()}, ",");
}

const v1::Step& StepInSight(const v1::Run& run) {
  const v1::Step* step = CurrentStep(run);
  return step == nullptr ? v1::Step::default_instance() : *step;
}

std::vector<Cell> RunRow(const v1::Run& run, const Shown& columns, absl::Time now) {
  const v1::Step& shown = StepInSight(run);
  std::vector<Cell> row = {{run.id()},
                           {StateText(run) + (run.has_removed_at() ? " (removed)" : ""), ColorOf(run.state())},
                           {run.reason()},
                           {ShortShape(shown)}};
  if (columns.estimates) row.push_back({EstimatedStart(shown.estimate(), now)});
  row.insert(row.end(), {{shown.backend()},
                         {ShortDuration(now - FromProto(run.created_at()))},
                         {GpuTime(run.gpu_ms())},
                         {std::to_string(run.retry_count())}});
  if (columns.wide) {
    row.insert(row.end(), {{run.owner()},
                           {run.project()},
                           {std::to_string(run.priority())},
                           {NodeNames(shown)},
                           {LabelText(run.labels())}});
  }
  return row;
}

std::string Indented(std::string_view text, int indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out += fmt::format("{:{}}{}\n", "", indent, text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

Terminal Narrowed(Terminal terminal, int by) {
  if (terminal.columns > 0) terminal.columns = std::max(1, terminal.columns - by);
  return terminal;
}

std::vector<Cell> AttemptRow(const v1::Attempt& attempt, absl::Time now) {
  const bool live = attempt.outcome() == v1::JOB_STATE_UNSPECIFIED;
  const absl::Time end = attempt.has_ended_at() ? FromProto(attempt.ended_at()) : now;
  const std::string failure =
      attempt.has_failure() ? attempt.failure().kind() + ": " + attempt.failure().sentence() : "";
  return {{std::to_string(attempt.number())},
          {live ? "live" : StateName(attempt.outcome()), ColorOf(attempt.outcome())},
          {RelativeTime(FromProto(attempt.created_at()), now)},
          {ShortDuration(end - FromProto(attempt.created_at()))},
          {std::to_string(attempt.cards())},
          {GpuSeconds(attempt.metered_ms() * attempt.cards())},
          {Join({attempt.nodes().begin(), attempt.nodes().end()}, ",")},
          {failure.empty() ? attempt.exit() : failure}};
}

std::string AttemptTable(const v1::Step& step, const Terminal& terminal, absl::Time now) {
  Table table({{"ATTEMPT", Align::kRight},
               {"STATE"},
               {"CREATED"},
               {"LASTED", Align::kRight},
               {"CARDS", Align::kRight},
               {"GPU-SECONDS", Align::kRight},
               {"NODES", Align::kLeft, true},
               {"EXIT", Align::kLeft, true}});
  std::vector<const v1::Attempt*> attempts;
  for (const v1::Attempt& attempt : step.past_attempts()) attempts.push_back(&attempt);
  if (step.has_attempt()) attempts.push_back(&step.attempt());
  std::sort(attempts.begin(), attempts.end(),
            [](const v1::Attempt* a, const v1::Attempt* b) { return a->number() < b->number(); });
  for (const v1::Attempt* attempt : attempts) table.AddRow(AttemptRow(*attempt, now));
  return table.empty() ? "" : table.Render(terminal);
}

std::string EnvironmentText(const v1::StepSpec& spec) {
  std::map<std::string, std::string> merged(spec.env().begin(), spec.env().end());
  for (const auto& [name, value] : spec.explicit_env()) merged[name] = value;
  return Pairs(merged);
}

std::string ShapeText(const v1::Step& step) {
  std::string shape =
      step.shape().empty() ? Join({step.spec().profiles().begin(), step.spec().profiles().end()}, ", ") : step.shape();
  size_t at = 0;
  while ((at = shape.find('\n', at)) != std::string::npos) shape.replace(at, 1, ", ");
  return shape;
}

// Of a step that runs: how old the newest is. Of one that is paused: what it cost.
std::string CheckpointText(const v1::Step& step, absl::Time now) {
  if (!step.has_checkpoint()) return "";
  const v1::Checkpoint& checkpoint = step.checkpoint();
  const std::string at_risk = ShortDuration(FromProto(checkpoint.at_risk()));
  const std::string which = checkpoint.path().empty() ? "none" : checkpoint.path();
  if (step.state() == v1::JOB_STATE_PAUSED) return fmt::format("{}: {} of work is done again", which, at_risk);
  if (checkpoint.path().empty()) return fmt::format("none seen in {}", at_risk);
  return fmt::format("{}, {} old", which, ShortDuration(now - FromProto(checkpoint.written_at())));
}

std::string StepFields(const v1::Step& step, const Terminal& terminal, absl::Time now, int indent) {
  Fields fields(indent, terminal);
  const v1::StepSpec& spec = step.spec();
  fields.Add("command", ShellQuote(spec.argv()));
  fields.Add("profile", ShapeText(step));
  fields.Add("backend", step.backend());
  fields.Add("image", spec.image());
  fields.Add("environment", EnvironmentText(spec));
  if (spec.has_time_limit()) fields.Add("time limit", ShortDuration(FromProto(spec.time_limit())));
  if (step.has_entered_at()) fields.Add("since", Moment(step.entered_at(), now));
  fields.Add("est. start", EstimateSentence(step.estimate(), now));
  fields.Add("checkpoint", CheckpointText(step, now));
  fields.Add("exit", step.exit());
  if (step.has_failure()) fields.Add("failure", step.failure().kind() + ": " + step.failure().sentence());
  return fields.text();
}

std::string StepBlock(const v1::Step& step, const Terminal& terminal, absl::Time now, int indent) {
  const Terminal narrowed = Narrowed(terminal, indent);
  std::string block = StepFields(step, terminal, now, indent);
  if (step.gates_size() > 0) block += "\n" + GateLines(step.gates(), terminal, now, indent);
  const std::string attempts = AttemptTable(step, narrowed, now);
  if (!attempts.empty()) block += "\n" + Indented(attempts, indent);
  return block;
}

std::string AfterText(const v1::Run& run) {
  std::vector<std::string> parts;
  for (const v1::RunDependency& other : run.after()) {
    const std::string outcome = other.outcome() == v1::RUN_STATE_UNSPECIFIED ? "not over" : StateName(other.outcome());
    parts.push_back(fmt::format("{} ({}; {})", other.run(), ConditionText(other.when()), outcome));
  }
  return Join(parts, ", ");
}

std::string NotifyText(const v1::Run& run) {
  std::vector<std::string> parts;
  for (const v1::Notice& notice : run.notify()) {
    std::vector<std::string> events;
    for (const int event : notice.on()) {
      events.push_back(EnumWord(v1::NoticeEvent_Name(event), "NOTICE_EVENT_"));
    }
    parts.push_back(fmt::format("{} ({})", notice.to(), Join(events, ", ")));
  }
  return Join(parts, ", ");
}

std::string RunFields(const v1::Run& run, const Terminal& terminal, absl::Time now) {
  Fields fields(0, terminal);
  if (run.has_removed_at()) {
    fields.Add("removed", Moment(run.removed_at(), now) + ": its files are gone; usage and events stay");
  }
  fields.Add("reason", run.reason());
  fields.Add("owner", run.owner());
  fields.Add("project", run.project());
  fields.Add("labels", LabelText(run.labels()));
  fields.Add("after", AfterText(run));
  fields.Add("notify", NotifyText(run));
  if (run.has_created_at()) fields.Add("created", Moment(run.created_at(), now));
  if (run.has_ended_at()) fields.Add("ended", Moment(run.ended_at(), now));
  fields.Add("gpu_seconds", GpuSeconds(run.gpu_ms()));
  if (run.retry_count() > 0) fields.Add("retries", std::to_string(run.retry_count()));
  if (run.priority() != kDefaultPriority) fields.Add("priority", std::to_string(run.priority()));
  fields.Add("snapshot", run.snapshot_id());
  if (!run.has_removed_at()) {
    fields.Add("files",
               fmt::format("{}/{}/ below the storage root: output/ results/ attempts/", run.owner(), run.id()));
  }
  return fields.text();
}

bool NeedsQuotes(std::string_view word) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
  };
  return word.empty() || !std::all_of(word.begin(), word.end(), harmless);
}

std::string Quoted(std::string_view word) {
  if (!NeedsQuotes(word)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string StateName(v1::RunState state) { return EnumWord(v1::RunState_Name(state), "RUN_STATE_"); }
std::string StateName(v1::JobState state) { return EnumWord(v1::JobState_Name(state), "JOB_STATE_"); }

bool IsTerminal(v1::RunState state) {
  return state == v1::RUN_STATE_SUCCEEDED || state == v1::RUN_STATE_FAILED || state == v1::RUN_STATE_STOPPED ||
         state == v1::RUN_STATE_PARTIAL;
}

std::string ConditionText(v1::AfterWhen when) {
  switch (when) {
    case v1::AFTER_WHEN_FAILURE:
      return "on failure";
    case v1::AFTER_WHEN_ALWAYS:
      return "always";
    default:  // also of a newer server
      return "on success";
  }
}

std::string RunTitle(const v1::Run& run, const Terminal& terminal) {
  return fmt::format("{}  {}\n", Paint(EscapeControl(run.id()), Color::kBold, terminal.colors),
                     Paint(EscapeControl(StateText(run)), ColorOf(run.state()), terminal.colors));
}

std::string StepTitle(const v1::Step& step, int count, const Terminal& terminal) {
  const std::string name = step.spec().name().empty() ? "" : " " + EscapeControl(step.spec().name());
  return fmt::format("step {} of {}{}  {}\n", step.index(), count, name,
                     Paint(EscapeControl(StateText(step)), ColorOf(step.state()), terminal.colors));
}

std::string StateText(const v1::Run& run) {
  return run.state_text().empty() ? StateName(run.state()) : run.state_text();
}

std::string StateText(const v1::Step& step) {
  return step.state_text().empty() ? StateName(step.state()) : step.state_text();
}

const v1::Step* CurrentStep(const v1::Run& run) {
  const auto ended = [](const v1::Step& step) {
    return step.state() == v1::JOB_STATE_SUCCEEDED || step.state() == v1::JOB_STATE_FAILED ||
           step.state() == v1::JOB_STATE_STOPPED;
  };
  const auto live = std::find_if_not(run.steps().begin(), run.steps().end(), ended);
  if (live != run.steps().end()) return &*live;
  return run.steps().empty() ? nullptr : &*run.steps().rbegin();
}

std::string ShortShape(std::string_view shape) {
  std::vector<std::string> pools;
  while (!shape.empty()) {
    const size_t end = shape.find('\n');
    const std::string_view line = shape.substr(0, end);
    shape = end == std::string_view::npos ? std::string_view() : shape.substr(end + 1);
    pools.emplace_back(line.substr(0, line.find(" = ")));
  }
  return Join(pools, ",");
}

std::string ShortShape(const v1::Step& step) {
  if (!step.shape().empty()) return ShortShape(step.shape());
  return Join({step.spec().profiles().begin(), step.spec().profiles().end()}, ",");
}

std::string ShellQuote(const google::protobuf::RepeatedPtrField<std::string>& argv) {
  return Join(Collect(argv, Quoted), " ");
}

std::string RunTable(const std::vector<v1::Run>& runs, bool wide, const Terminal& terminal, absl::Time now) {
  const bool estimates =
      std::any_of(runs.begin(), runs.end(), [](const v1::Run& run) { return StepInSight(run).has_estimate(); });
  const Shown shown{.wide = wide, .estimates = estimates};
  Table table(RunColumns(shown));
  for (const v1::Run& run : runs) table.AddRow(RunRow(run, shown, now));
  return table.Render(terminal);
}

std::string RunPage(const v1::Run& run, const Terminal& terminal, absl::Time now) {
  std::string page = RunTitle(run, terminal) + RunFields(run, terminal, now);
  if (run.has_array() && run.steps_size() > 0) {
    const v1::StepSpec& spec = run.steps(0).spec();
    Fields fields(0, terminal);
    fields.Add("tasks", ArrayLine(run.array()));
    fields.Add("command", ShellQuote(spec.argv()));
    fields.Add("profile", ShapeText(run.steps(0)));
    fields.Add("environment", EnvironmentText(spec));
    if (spec.has_time_limit()) fields.Add("time limit", ShortDuration(FromProto(spec.time_limit())));
    const std::string tasks = TaskTable(run, terminal, now);
    return page + fields.text() + (tasks.empty() ? "" : "\n") + tasks;
  }
  if (run.steps_size() == 1) return page + StepBlock(run.steps(0), terminal, now, 0);
  page += "\n" + StepTree(run, terminal, now);
  for (int i = 0; i < run.steps_size(); ++i) {
    page += "\n" + StepTitle(run.steps(i), run.steps_size(), terminal);
    if (!run.steps(i).reason().empty()) {
      page += Hanging("reason     ", EscapeControl(run.steps(i).reason()), 2, terminal.columns);
    }
    page += StepBlock(run.steps(i), terminal, now, 2);
  }
  return page;
}

std::string PlanPage(const v1::Run& run, const google::protobuf::RepeatedPtrField<std::string>& notes,
                     const Terminal& terminal, absl::Time now) {
  std::string page;
  for (int i = 0; i < run.steps_size(); ++i) {
    const v1::Step& step = run.steps(i);
    if (run.steps_size() > 1) page += fmt::format("step {}  {}\n", i + 1, EscapeControl(step.spec().name()));
    page += StepBlock(step, terminal, now, 0);
  }
  for (const std::string& note : notes) page += fmt::format("note: {}\n", EscapeControl(note));
  return page;
}

}  // namespace tp::cli
