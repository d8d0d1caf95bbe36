#include "cli/render/array.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/render/runs.h"
#include "cli/render/table.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

// More than this nobody reads in a terminal.
constexpr size_t kMostRows = 30;

// What needs a look first; 0: not shown.
int Rank(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_FAILED:
      return 4;
    case v1::JOB_STATE_RUNNING:
      return 3;
    case v1::JOB_STATE_SUBMITTED:
    case v1::JOB_STATE_PENDING:
      return 2;
    case v1::JOB_STATE_PAUSED:
      return 1;
    default:  // waits, or is over; or of a newer server
      return 0;
  }
}

std::vector<const v1::Step*> Shown(const v1::Run& run) {
  std::vector<const v1::Step*> shown;
  for (const v1::Step& step : run.steps()) {
    if (Rank(step.state()) > 0) shown.push_back(&step);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const v1::Step* a, const v1::Step* b) { return Rank(a->state()) > Rank(b->state()); });
  return shown;
}

}  // namespace

std::string ArrayLine(const v1::ArrayStatus& array) {
  std::string counts;
  const auto add = [&counts](int32_t count, std::string_view what) {
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, what);
  };
  add(array.running(), "running");
  add(array.starting(), "starting");
  add(array.paused(), "paused");
  add(array.succeeded(), "succeeded");
  add(array.failed(), "failed");
  add(array.stopped(), "stopped");
  add(array.queued(), "queued");
  const std::string limit = array.limit() > 0 ? fmt::format(", {} at once", array.limit()) : "";
  return fmt::format("{} tasks{}: {}", array.tasks(), limit, counts);
}

std::string TaskTable(const v1::Run& run, const Terminal& terminal, absl::Time now) {
  const std::vector<const v1::Step*> shown = Shown(run);
  if (shown.empty()) return "";
  Table table({{"TASK"},
               {"STEP", Align::kRight, false, 2},
               {"STATE"},
               {"RETRY", Align::kRight, false, 1},
               {"SINCE", Align::kRight},
               {"REASON", Align::kLeft, true}});
  for (size_t i = 0; i < shown.size() && i < kMostRows; ++i) {
    const v1::Step& step = *shown[i];
    table.AddRow({{std::to_string(step.spec().array_index())},
                  {std::to_string(step.index())},
                  {StateText(step), ColorOf(step.state())},
                  {std::to_string(step.retry_count())},
                  {step.has_entered_at() ? ShortDuration(now - FromProto(step.entered_at())) : ""},
                  {step.reason()}});
  }
  std::string text = table.Render(terminal);
  if (shown.size() > kMostRows) text += fmt::format("and {} more: -o json has all\n", shown.size() - kMostRows);
  return text;
}

}  // namespace tp::cli
