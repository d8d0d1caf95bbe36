#include "cli/render/queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/collect.h"
#include "cli/render/estimate.h"
#include "cli/render/fields.h"
#include "cli/render/gates.h"
#include "cli/render/runs.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr std::string_view kOnlyStep = "main";

std::string Counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// `train-43`, of a pipeline `train-43/eval`; where the names are not ours to see, `somebody's`.
std::string RunText(const v1::QueueEntry& entry) {
  if (entry.run().empty()) return "somebody's";
  return entry.step_name() == kOnlyStep ? entry.run() : fmt::format("{}/{}", entry.run(), entry.step_name());
}

std::string GateText(const v1::QueueEntry& entry) {
  if (!entry.has_gate()) return "about to launch";
  const std::string sentence = entry.gate().sentence().empty() ? "" : ": " + entry.gate().sentence();
  const std::string more = entry.gate_count() > 1 ? fmt::format(" (and {} more)", entry.gate_count() - 1) : "";
  return GateName(entry.gate().gate()) + sentence + more;
}

std::vector<Cell> QueueRow(const v1::QueueEntry& entry, bool wide, absl::Time now) {
  std::vector<Cell> row = {{std::to_string(entry.position())},
                           {RunText(entry)},
                           {entry.owner()},
                           {ShortShape(entry.shape())},
                           {std::to_string(entry.effective_priority())},
                           {ShortDuration(now - FromProto(entry.submitted_at()))},
                           {EstimatedStart(entry.estimate(), now)},
                           {GateText(entry)}};
  if (wide) {
    row.insert(row.end(), {{std::to_string(entry.cards())},
                           {fmt::format("{}", fmt::join(entry.series(), ","))},
                           {std::to_string(entry.priority())},
                           {Rfc3339(FromProto(entry.submitted_at()))}});
  }
  return row;
}

bool IsWaiting(v1::JobState state) {
  return state == v1::JOB_STATE_QUEUED || state == v1::JOB_STATE_SUBMITTED || state == v1::JOB_STATE_PENDING ||
         state == v1::JOB_STATE_PAUSED;
}

std::string AheadText(const v1::QueueEntry& entry) {
  const std::string owner = entry.owner().empty() ? "" : fmt::format(" ({})", entry.owner());
  return fmt::format("{} {}{}", RunText(entry), ShortShape(entry.shape()), owner);
}

std::string AheadLine(const v1::StepExplanation& step) {
  if (step.ahead_count() == 0) return "nothing";
  const int left_out = step.ahead_count() - step.ahead_size();
  return fmt::format("{} for {}: {}{}", Counted(step.ahead_count(), "step"), Counted(step.ahead_cards(), "card"),
                     fmt::join(Collect(step.ahead(), AheadText), ", "),
                     left_out > 0 ? fmt::format(" and {} more", left_out) : "");
}

// When it starts, what would start now, and what is ahead.
std::string QueueLines(const v1::StepExplanation& step, const Terminal& terminal, absl::Time now) {
  Fields fields(2, terminal);
  fields.Add("est. start", EstimateSentence(step.estimate(), now));
  for (const std::string& hint : step.hints()) fields.Add(&hint == &step.hints(0) ? "could start" : "", hint);
  if (step.position() > 0) {
    fields.Add("position", fmt::format("{} of {} that want the same cards", step.position(), step.queue_length()));
    fields.Add("ahead", AheadLine(step));
  }
  return fields.text();
}

}  // namespace

std::string QueueTable(const std::vector<v1::QueueEntry>& entries, bool wide, const Terminal& terminal,
                       absl::Time now) {
  std::vector<Column> columns = {{"POS", Align::kRight},
                                 {"RUN"},
                                 {"USER", Align::kLeft, false, 1},
                                 {"PROFILE"},
                                 {"PRIORITY", Align::kRight, false, 2},
                                 {"AGE", Align::kRight},
                                 {"EST START"},
                                 {"REASON", Align::kLeft, true}};
  if (wide) {
    columns.insert(columns.end(), {{"CARDS", Align::kRight, false, 3},
                                   {"SERIES", Align::kLeft, false, 4},
                                   {"BASE", Align::kRight, false, 5},
                                   {"SUBMITTED", Align::kLeft, false, 6}});
  }
  Table table(columns);
  for (const v1::QueueEntry& entry : entries) table.AddRow(QueueRow(entry, wide, now));
  return table.Render(terminal);
}

std::string QueueSentence(int64_t steps, int64_t cards) {
  return fmt::format("{} wait{}, for {}", Counted(steps, "step"), steps == 1 ? "s" : "", Counted(cards, "card"));
}

std::string WhyPage(const v1::ExplainRunResponse& response, const Terminal& terminal, absl::Time now) {
  const v1::Run& run = response.run();
  std::string page;
  for (int i = 0; i < run.steps_size() && i < response.steps_size(); ++i) {
    const v1::Step& step = run.steps(i);
    if (!IsWaiting(step.state())) continue;
    page += run.steps_size() == 1 ? RunTitle(run, terminal) : StepTitle(step, run.steps_size(), terminal);
    page += step.gates_size() > 0 ? GateLines(step.gates(), terminal, now, 2)
                                  : Hanging("", EscapeControl(step.reason()), 1, terminal.columns);
    page += QueueLines(response.steps(i), terminal, now);
  }
  if (!page.empty()) return page;
  return fmt::format("{} is {}: nothing holds it{}\n", EscapeControl(run.id()), EscapeControl(StateText(run)),
                     run.reason().empty() ? "" : " (" + EscapeControl(run.reason()) + ")");
}

}  // namespace tp::cli
