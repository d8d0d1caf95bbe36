// The keys of each backend's executors (`config` in jobs.executors, jobs.executor_defaults), as described
// in tpd.yaml and handed to the backend as JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "decode/type.h"

namespace tp::config {

// Names of core::kBackends.
std::vector<std::string> BackendNames();

// The description of a backend's `config`. `backend` is one of BackendNames().
const decode::Type<nlohmann::json>& BackendConfigType(const std::string& backend);

// jobs.executor_defaults: an object of backend to its config.
const decode::Type<nlohmann::json>& ExecutorDefaultsType();

}  // namespace tp::config
