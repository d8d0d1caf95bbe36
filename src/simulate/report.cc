#include "simulate/report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/strings.h"

namespace tp::simulate {
namespace {

using Row = std::vector<std::string>;

// The first two columns are text, the others numbers.
constexpr size_t kTextColumns = 2;

std::string TableText(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line +=
          i < kTextColumns ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + "\n";
}

// The two largest units: nobody plans by the seconds of a week.
std::string Short(absl::Duration duration) {
  for (const absl::Duration unit : {absl::Hours(24), absl::Hours(1), absl::Minutes(1)}) {
    if (duration < unit) continue;
    const absl::Duration fine = unit == absl::Hours(24) ? absl::Hours(1) : unit / 60;
    return DurationText(absl::Trunc(duration, fine));
  }
  return DurationText(absl::Trunc(duration, absl::Seconds(1)));
}

std::string Time(absl::Time at, absl::TimeZone zone) {
  return std::string(ToStd(absl::FormatTime("%Y-%m-%d %H:%M:%S", at, zone)));
}

std::string Seconds(int64_t ms) { return fmt::format("{}.{:03}", ms / 1000, ms % 1000); }

void AppendSpread(const Spread& spread, Row& row) {
  for (const absl::Duration duration : {spread.mean, spread.median, spread.p95, spread.max}) {
    row.push_back(Short(duration));
  }
}

Row SpreadRow(const std::string& name, const Figures& figures, const Spread& spread) {
  Row row = {name, figures.policy, fmt::format("{}", spread.count)};
  AppendSpread(spread, row);
  return row;
}

// For each key that any of the policies has, a row of each policy that has it.
template <typename Map, typename RowOf>
void AppendRows(const Report& report, Map Figures::*member, const RowOf& row_of, std::vector<Row>& rows) {
  std::set<typename Map::key_type> keys;
  for (const Figures& figures : report.policies) {
    for (const auto& [key, value] : figures.*member) keys.insert(key);
  }
  for (const auto& key : keys) {
    for (const Figures& figures : report.policies) {
      const auto found = (figures.*member).find(key);
      if (found != (figures.*member).end()) rows.push_back(row_of(key, figures, found->second));
    }
  }
}

std::string JobsTable(const Report& report) {
  std::vector<Row> rows = {{"JOBS", "POLICY", "SUBMITTED", "REFUSED", "ENDED", "OVER LIMIT", "PAUSES", "NEVER STARTED",
                            "LAST END", "EVENTS", "EVALUATIONS"}};
  for (const Figures& figures : report.policies) {
    const auto number = [](int64_t value) { return fmt::format("{}", value); };
    rows.push_back({"all", figures.policy, number(figures.submitted), number(figures.refused_count()),
                    number(figures.ended), number(figures.over_limit), number(figures.pauses),
                    number(figures.never_started), Time(figures.ends, report.zone), number(figures.events),
                    number(figures.planner.evaluations)});
  }
  return TableText(rows);
}

std::string RefusedTable(const Report& report) {
  std::vector<Row> rows = {{"REFUSED BECAUSE", "POLICY", "JOBS"}};
  const auto row = [](const std::string& reason, const Figures& figures, int64_t jobs) {
    return Row{reason, figures.policy, fmt::format("{}", jobs)};
  };
  AppendRows(report, &Figures::refused, row, rows);
  return rows.size() == 1 ? "" : TableText(rows);
}

std::string WaitTable(const Report& report) {
  const auto heading = [](const char* name) { return Row{name, "POLICY", "JOBS", "MEAN", "MEDIAN", "P95", "MAX"}; };
  std::vector<Row> all = {heading("WAIT")};
  for (const Figures& figures : report.policies) all.push_back(SpreadRow("all", figures, figures.wait));
  std::vector<Row> by_user = {heading("WAIT BY USER")};
  AppendRows(report, &Figures::wait_by_user, SpreadRow, by_user);
  std::vector<Row> by_size = {heading("WAIT BY SIZE")};
  AppendRows(report, &Figures::wait_by_size, SpreadRow, by_size);
  return TableText(all) + TableText(by_user) + TableText(by_size);
}

std::string GateTable(const Report& report) {
  std::vector<Row> rows = {{"WAITED AT", "POLICY", "JOBS", "IN ALL", "MEAN", "MEDIAN", "P95", "MAX"}};
  const auto row = [](core::GateKind gate, const Figures& figures, const Spread& spread) {
    Row cells = {std::string(core::Name(gate)), figures.policy, fmt::format("{}", spread.count), Short(spread.sum)};
    AppendSpread(spread, cells);
    return cells;
  };
  AppendRows(report, &Figures::gates, row, rows);
  return rows.size() == 1 ? "No job waited.\n\n" : TableText(rows);
}

std::string SeriesTable(const Report& report) {
  std::vector<Row> rows = {{"SERIES", "POLICY", "CARDS OR NODES", "IN USE"}};
  const auto row = [](const std::string& name, const Figures& figures, const SeriesUse& use) {
    return Row{name, figures.policy, fmt::format("{}", use.units), fmt::format("{:.1f}%", use.share * 100)};
  };
  AppendRows(report, &Figures::series, row, rows);
  return TableText(rows);
}

std::string UsageTable(const Report& report) {
  std::vector<Row> rows = {{"USER", "POLICY", "GPU_SECONDS"}};
  const auto row = [](const std::string& user, const Figures& figures, int64_t gpu_ms) {
    return Row{user, figures.policy, Seconds(gpu_ms)};
  };
  AppendRows(report, &Figures::gpu_ms_by_user, row, rows);
  return TableText(rows);
}

}  // namespace

std::string TextReport(const Report& report) {
  const Figures& first = report.policies.front();
  std::string text =
      fmt::format("{} jobs from {} on ({})\n", first.submitted, Time(first.begins, report.zone), report.zone.name());
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  text += "\n" + JobsTable(report) + RefusedTable(report) + WaitTable(report) + GateTable(report) +
          SeriesTable(report) + UsageTable(report);
  text.pop_back();  // the last table's empty line
  return text;
}

}  // namespace tp::simulate
