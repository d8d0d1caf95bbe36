#include "cli/metrics.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/near_miss.h"
#include "base/status.h"
#include "cli/collect.h"
#include "cli/render/csv.h"
#include "cli/render/plot.h"
#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

constexpr const char* kStep = "step";

std::vector<std::string> ColumnNames(const Json& metrics) {
  std::vector<std::string> names;
  for (const Json& line : metrics) {
    if (!line.is_object()) continue;
    for (const auto& [name, value] : line.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name == kStep; });
  return names;
}

std::string CellText(const Json& line, const std::string& name) {
  const auto found = line.find(name);
  if (found == line.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<std::vector<std::string>> Cells(const Json& metrics, const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& line : metrics) {
    if (!line.is_object()) continue;
    rows.push_back(Collect(names, [&](const std::string& name) { return CellText(line, name); }));
  }
  return rows;
}

std::vector<PlotPoint> PointsOf(const Json& metrics, const std::string& name) {
  std::vector<PlotPoint> points;
  double number = 0;
  for (const Json& line : metrics) {
    if (!line.is_object()) continue;
    const auto step = line.find(kStep);
    const auto value = line.find(name);
    if (value != line.end() && value->is_number()) {
      points.push_back({step != line.end() && step->is_number() ? step->get<double>() : number, value->get<double>()});
    }
    ++number;
  }
  return points;
}

}  // namespace

Json MetricsToJson(const google::protobuf::RepeatedPtrField<std::string>& lines) {
  Json metrics = Json::array();
  for (const std::string& line : lines) {
    Json parsed = Json::parse(line, nullptr, false);
    metrics.push_back(parsed.is_object() ? std::move(parsed) : Json(line));
  }
  return metrics;
}

absl::StatusOr<Json> SelectMetrics(const Json& metrics, const std::vector<std::string>& names) {
  if (names.empty()) return metrics;
  const std::vector<std::string> known = ColumnNames(metrics);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = NearMiss(name, known);
    return NotFound("--metric {}: the run has none of that name; {}", name,
                    meant ? fmt::format("did you mean {}?", *meant) : fmt::format("it has {}", fmt::join(known, ", ")));
  }
  Json selected = Json::array();
  for (const Json& line : metrics) {
    Json kept = Json::object();
    for (const std::string& name : known) {
      const bool wanted = name == kStep || std::find(names.begin(), names.end(), name) != names.end();
      if (wanted && line.is_object() && line.contains(name)) kept[name] = line[name];
    }
    const bool only_step = kept.size() == 1 && kept.contains(kStep);
    if (!kept.empty() && !only_step) selected.push_back(std::move(kept));
  }
  return selected;
}

std::string MetricsTable(const Json& metrics, const Terminal& terminal) {
  const std::vector<std::string> names = ColumnNames(metrics);
  if (names.empty()) return "";
  Table table(Collect(names, [](const std::string& name) { return Column{EscapeControl(name), Align::kRight, true}; }));
  for (const auto& row : Cells(metrics, names)) {
    table.AddRow(Collect(row, [](const std::string& text) { return Cell{text, Color::kNone}; }));
  }
  return table.Render(terminal);
}

std::string MetricsCsv(const Json& metrics) {
  const std::vector<std::string> names = ColumnNames(metrics);
  if (names.empty()) return "";
  std::string csv = CsvLine(names);
  for (const auto& row : Cells(metrics, names)) csv += CsvLine(row);
  return csv;
}

std::string MetricsPlots(const Json& metrics, const Terminal& terminal) {
  std::string plots;
  for (const std::string& name : ColumnNames(metrics)) {
    const std::vector<PlotPoint> points = PointsOf(metrics, name);
    if (name == kStep || points.empty()) continue;
    if (!plots.empty()) plots += "\n";
    plots += Plot({.title = EscapeControl(name), .x_label = kStep, .points = points}, terminal);
  }
  return plots;
}

}  // namespace tp::cli
