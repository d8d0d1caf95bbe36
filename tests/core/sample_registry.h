// A registry for tests of the resource flag: every kind of series and backend.
#pragma once

#include <string>

#include <fmt/format.h>

#include "core/registry.h"

namespace tp::core {

inline void AddSampleExecutor(Registry& registry, const std::string& provider, const std::string& profile,
                              const std::string& backend, std::map<std::string, std::string> shared = {}) {
  Executor executor;
  executor.name = fmt::format("{}/{}", provider, profile);
  executor.provider = provider;
  executor.profile = profile;
  executor.backend = backend;
  executor.config_json = "{}";
  executor.shared = std::move(shared);
  registry.executors[executor.name] = executor;
}

// A series and a profile of the same name whose default is one node. `nodes` 0: the engine knows them.
inline Series& AddSampleSeries(Registry& registry, const std::string& name, int gpus_per_node, int nodes,
                               const std::string& executor) {
  Series series;
  series.name = name;
  series.gpus_per_node = gpus_per_node;
  for (int i = 1; i <= nodes; ++i) {
    series.nodes.push_back({.name = fmt::format("{}-{}", name, i), .address = fmt::format("10.0.0.{}", i)});
  }
  series.executor = executor;
  Profile profile;
  profile.name = name;
  profile.series = name;
  profile.default_total = gpus_per_node == 0 ? 1 : gpus_per_node;
  registry.profiles[name] = profile;
  return registry.series[name] = series;
}

inline Registry SampleRegistry() {
  Registry registry;
  AddSampleExecutor(registry, "cpu", "default", "local");
  AddSampleExecutor(registry, "gpu", "default", "local");
  AddSampleExecutor(registry, "gpu", "machines", "node");
  AddSampleExecutor(registry, "gpu", "kube", "kubernetes_job", {{"namespace", "\"ml\""}, {"queue", "\"q\""}});
  AddSampleExecutor(registry, "gpu", "kube2", "kubernetes_job", {{"namespace", "\"other\""}, {"queue", "\"q\""}});
  AddSampleExecutor(registry, "gpu_distributed", "kube", "volcano_job", {{"namespace", "\"ml\""}});
  AddSampleExecutor(registry, "gpu", "slurm", "slurm", {{"account", "\"lab\""}});
  AddSampleSeries(registry, "cpu", 0, 4, "cpu/default");
  AddSampleSeries(registry, "h200", 8, 4, "gpu/default");
  AddSampleSeries(registry, "a100", 4, 2, "gpu/default");
  AddSampleSeries(registry, "rack", 8, 16, "gpu/machines");
  AddSampleSeries(registry, "k8", 8, 0, "gpu/kube");
  AddSampleSeries(registry, "k8b", 8, 3, "gpu/kube");
  AddSampleSeries(registry, "k4", 4, 0, "gpu/kube");
  AddSampleSeries(registry, "k8other", 8, 0, "gpu/kube2");
  AddSampleSeries(registry, "kcpu", 0, 0, "gpu/kube");
  AddSampleSeries(registry, "s8", 8, 0, "gpu/slurm").constraint = "h200";
  AddSampleSeries(registry, "s8b", 8, 0, "gpu/slurm").constraint = "b200";
  AddSampleSeries(registry, "s8plain", 8, 0, "gpu/slurm");
  return registry;
}

}  // namespace tp::core
