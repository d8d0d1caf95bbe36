#include "config/executors.h"

#include <array>

#include <nlohmann/json.hpp>

#include "base/secret_names.h"
#include "decode/json_type.h"

namespace tp::config {
namespace {

using Json = nlohmann::json;

// What executors of several pools of a job agree on (DESIGN 3).
constexpr std::array<std::string_view, 5> kSharedKeys = {"namespace", "storage", "queue", "account", "launcher"};

core::Executor MakeExecutor(const std::string& provider, const std::string& profile, const std::string& backend,
                            const Json& defaults, const Json& own) {
  const Json config = decode::DeepMerge(defaults.value(backend, Json::object()), own);
  core::Executor executor;
  executor.name = fmt::format("{}/{}", provider, profile);
  executor.provider = provider;
  executor.profile = profile;
  executor.backend = backend;
  executor.config_json = config.dump();
  for (const std::string_view key : kSharedKeys) {
    if (const auto value = config.find(std::string(key)); value != config.end()) {
      executor.shared[std::string(key)] = value->dump();
    }
  }
  return executor;
}

// `key` is a word of tolerations and selectors and names no secret there.
void Mask(const std::string& name, Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (ValueLooksSecret(text) || (name != "key" && NameLooksSecret(name))) value = std::string(kMaskedValue);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.items()) Mask(key, member);
  } else if (value.is_array()) {
    for (Json& item : value) Mask(name, item);
  }
}

}  // namespace

std::string MaskedConfig(const core::Executor& executor) {
  Json config = Json::parse(executor.config_json);
  Mask("", config);
  return config.dump();
}

std::map<std::string, core::Executor> BuildExecutors(const ServerFile& file, const std::string& default_backend,
                                                     decode::Problems& problems) {
  const Json& defaults = file.jobs.executor_defaults;
  std::map<std::string, core::Executor> executors;
  for (const decode::Located<ExecutorEntry>& located : file.jobs.executors) {
    const ExecutorEntry& entry = located.value;
    core::Executor executor = MakeExecutor(entry.provider, entry.profile, entry.backend, defaults, entry.config);
    const std::string name = executor.name;
    if (!executors.emplace(name, std::move(executor)).second) {
      problems.Add(located.at, fmt::format("executor {} is here twice", name));
    }
  }
  for (const char* provider : {"cpu", "gpu"}) {
    core::Executor executor = MakeExecutor(provider, "default", default_backend, defaults, Json::object());
    const std::string name = executor.name;
    executors.emplace(name, std::move(executor));
  }
  return executors;
}

}  // namespace tp::config
