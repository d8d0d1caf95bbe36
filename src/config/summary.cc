#include "config/summary.h"

#include <vector>

#include <fmt/ranges.h>

namespace tp::config {
namespace {

std::string SeriesText(const core::Series& series) {
  const std::string nodes = series.nodes.empty() ? "" : fmt::format("{} x ", series.nodes.size());
  const std::string size = series.gpus_per_node == 0 ? "cpu" : fmt::format("{} cards", series.gpus_per_node);
  return fmt::format("{} ({}{})", series.name, nodes, size);
}

template <typename Map, typename Text>
std::string Line(std::string_view plural, const Map& map, const Text& text) {
  std::vector<std::string> items;
  items.reserve(map.size());
  for (const auto& [name, value] : map) items.push_back(text(value));
  return fmt::format("{} {}: {}\n", items.size(), plural, fmt::join(items, ", "));
}

}  // namespace

std::string Summary(const Loaded& loaded) {
  const core::Registry& registry = loaded.registry;
  return Line("series", registry.series, SeriesText) +
         Line("profiles", registry.profiles,
              [](const core::Profile& profile) { return fmt::format("{} -> {}", profile.name, profile.series); }) +
         Line("executors", registry.executors,
              [](const core::Executor& executor) { return fmt::format("{} ({})", executor.name, executor.backend); });
}

}  // namespace tp::config
