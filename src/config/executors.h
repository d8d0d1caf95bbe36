// jobs.executors and jobs.executor_defaults of tpd.yaml, checked and merged (DESIGN 3).
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "config/problem.h"
#include "config/server_config.h"
#include "core/registry.h"

namespace tp::config {

// The description of a backend's `config`. `backend` is one of core::kBackends.
const Type<nlohmann::json>& BackendConfigType(const std::string& backend);

// By name; cpu/default and gpu/default are always among them. Needs a file that was decoded without
// problems; those of the backends' own keys are found here.
std::map<std::string, core::Executor> BuildExecutors(const ServerFile& file, const std::string& default_backend,
                                                     Problems& problems);

}  // namespace tp::config
