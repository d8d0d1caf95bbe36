#include "cli/metrics.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/collect.h"
#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

std::vector<std::string> ColumnNames(const Json& metrics) {
  std::vector<std::string> names;
  for (const Json& line : metrics) {
    if (!line.is_object()) continue;
    for (const auto& [name, value] : line.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name == "step"; });
  return names;
}

std::string CellText(const Json& line, const std::string& name) {
  const auto found = line.find(name);
  if (found == line.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump(-1, ' ', true, Json::error_handler_t::replace);
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

std::string MetricsTable(const Json& metrics, const Terminal& terminal) {
  const std::vector<std::string> names = ColumnNames(metrics);
  if (names.empty()) return "";
  Table table(Collect(names, [](const std::string& name) { return Column{EscapeControl(name), Align::kRight, true}; }));
  for (const Json& line : metrics) {
    if (!line.is_object()) continue;
    table.AddRow(Collect(names, [&](const std::string& name) { return Cell{CellText(line, name), Color::kNone}; }));
  }
  return table.Render(terminal);
}

}  // namespace tp::cli
