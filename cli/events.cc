#include "cli/events.h"

#include <fmt/format.h>

#include "base/status.h"
#include "cli/render/runs.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

constexpr int32_t kEventPage = 500;

std::string StateChange(const v1::Event& event) {
  if (event.to() == v1::JOB_STATE_UNSPECIFIED) return "";
  if (event.from() == event.to() || event.from() == v1::JOB_STATE_UNSPECIFIED) return StateName(event.to());
  return StateName(event.from()) + " -> " + StateName(event.to());
}

std::string NumberOrNothing(int32_t number) { return number == 0 ? "" : std::to_string(number); }

}  // namespace

absl::StatusOr<std::vector<v1::Event>> ListEvents(Client& client, const std::string& run) {
  std::vector<v1::Event> events;
  v1::ListRunEventsRequest request;
  request.set_run(run);
  request.set_page_size(kEventPage);
  while (true) {
    TP_ASSIGN_OR_RETURN(v1::ListRunEventsResponse page, client.Call(&v1::RunService::Stub::ListRunEvents, request));
    if (page.events().empty()) return events;
    for (v1::Event& event : *page.mutable_events()) events.push_back(std::move(event));
    request.set_after_revision(events.back().revision());
  }
}

std::string EventTable(const std::vector<v1::Event>& events, bool wide, const Terminal& terminal, absl::Time now) {
  std::vector<Column> columns = {
      {"AGE", Align::kRight},      {"STEP", Align::kRight}, {"ATTEMPT", Align::kRight}, {"EVENT"}, {"STATE"},
      {"NOTE", Align::kLeft, true}};
  if (wide) columns.insert(columns.begin(), {{"REVISION", Align::kRight}, {"AT"}});
  Table table(columns);
  for (const v1::Event& event : events) {
    const absl::Time at = FromProto(event.at());
    std::vector<Cell> row = {{ShortDuration(now - at)},
                             {std::to_string(event.step())},
                             {NumberOrNothing(event.attempt())},
                             {event.event()},
                             {StateChange(event), ColorOf(event.to())},
                             {event.note()}};
    if (wide) row.insert(row.begin(), {{std::to_string(event.revision())}, {Rfc3339(at)}});
    table.AddRow(std::move(row));
  }
  return table.Render(terminal);
}

std::string EventLine(const v1::Event& event) {
  std::string line = fmt::format("{}  run {} step {}", Rfc3339(FromProto(event.at())), event.run(), event.step());
  if (event.attempt() != 0) line += fmt::format(" attempt {}", event.attempt());
  line += "  " + event.event();
  if (const std::string change = StateChange(event); !change.empty()) line += "  " + change;
  if (!event.note().empty()) line += "  " + event.note();
  return EscapeControl(line);
}

}  // namespace tp::cli
