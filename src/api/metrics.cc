#include "api/metrics.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace tp::api {
namespace {

struct MetricLine {
  std::string text;
  std::optional<int64_t> step;
};

std::optional<MetricLine> ParseLine(std::string_view text) {
  // Deep nesting has no use here and would only cost stack.
  constexpr size_t kMaxLineBytes = size_t{1} << 20;
  if (text.empty() || text.size() > kMaxLineBytes) return std::nullopt;
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  MetricLine line{.text = std::string(text), .step = std::nullopt};
  if (const auto step = object.find("step"); step != object.end() && step->is_number_integer()) {
    line.step = step->get<int64_t>();
  }
  return line;
}

std::vector<MetricLine> ParseLines(std::string_view content) {
  std::vector<MetricLine> lines;
  while (!content.empty()) {
    const size_t newline = content.find('\n');
    if (auto line = ParseLine(content.substr(0, newline))) lines.push_back(*std::move(line));
    content = newline == std::string_view::npos ? std::string_view() : content.substr(newline + 1);
  }
  return lines;
}

}  // namespace

MergedMetrics MergeMetrics(const std::vector<std::string>& attempts, int64_t after_step, size_t max_bytes) {
  std::set<int64_t> superseded;  // steps of later attempts
  std::vector<std::string> newest_first;
  size_t bytes = 0;
  MergedMetrics merged;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend() && !merged.truncated; ++attempt) {
    std::vector<MetricLine> lines = ParseLines(*attempt);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      if (line->step && (*line->step < after_step || superseded.contains(*line->step))) continue;
      bytes += line->text.size();
      if (bytes > max_bytes) {
        merged.truncated = true;
        break;
      }
      newest_first.push_back(std::move(line->text));
    }
    for (const MetricLine& line : lines) {
      if (line.step) superseded.insert(*line.step);
    }
  }
  merged.lines.assign(std::make_move_iterator(newest_first.rbegin()), std::make_move_iterator(newest_first.rend()));
  return merged;
}

}  // namespace tp::api
