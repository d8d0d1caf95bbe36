#include "sim/fleet.h"

#include <fmt/format.h>

namespace tp::sim {
namespace {

core::Executor MakeExecutor(const std::string& provider, const std::string& backend) {
  core::Executor executor;
  executor.name = provider + "/default";
  executor.provider = provider;
  executor.profile = "default";
  executor.backend = backend;
  executor.config_json = "{}";
  return executor;
}

core::Series MakeSeries(const std::string& name, int gpus_per_node, int nodes, const std::string& executor) {
  core::Series series;
  series.name = name;
  series.gpus_per_node = gpus_per_node;
  series.executor = executor;
  for (int i = 0; i < nodes; ++i) {
    series.nodes.push_back({fmt::format("{}-{}", name, i), fmt::format("10.0.0.{}", i + 1)});
  }
  return series;
}

core::Profile MakeProfile(const std::string& name, const std::string& series, int64_t total) {
  core::Profile profile;
  profile.name = name;
  profile.series = series;
  profile.default_total = total;
  return profile;
}

}  // namespace

core::Registry MakeFleet(const Options& options, bool shrunk) {
  core::Registry registry;
  for (const auto& [provider, backend] : {std::pair("cpu", "local"), std::pair("gpu", "kubernetes_job")}) {
    core::Executor executor = MakeExecutor(provider, backend);
    registry.executors[executor.name] = std::move(executor);
  }
  registry.series["cpu"] = MakeSeries("cpu", 0, 2, "cpu/default");
  registry.series["gpu"] = MakeSeries("gpu", options.cards_per_node, options.nodes, "gpu/default");
  if (!options.admin.hours.empty()) {
    core::Window window;
    window.open = options.admin.hours;
    window.grace = options.admin.grace;
    window.min_remaining = options.admin.min_remaining;
    registry.series["gpu"].windows = {window};
  }
  // Some nodes belong to a second series: their cards still exist once.
  core::Series shared = MakeSeries("gpu", options.cards_per_node, options.nodes - 1, "gpu/default");
  shared.name = "shared";
  registry.series["shared"] = std::move(shared);
  registry.profiles["cpu"] = MakeProfile("cpu", "cpu", 1);
  registry.profiles["card"] = MakeProfile("card", "gpu", 1);
  registry.profiles["shared"] = MakeProfile("shared", "shared", options.cards_per_node);
  if (!shrunk) registry.profiles["node"] = MakeProfile("node", "gpu", options.cards_per_node);
  return registry;
}

std::vector<std::vector<std::string>> ShapeFlags(const Options& options) {
  const std::string two_nodes = fmt::format("node:{}", 2 * options.cards_per_node);
  return {{}, {"cpu:2"}, {"card"}, {"card"}, {"node"}, {two_nodes}, {"shared"}, {"learner=node", "actor=node"}};
}

}  // namespace tp::sim
