// jobs.executors and jobs.executor_defaults of tpd.yaml, checked and merged (DESIGN 3).
#pragma once

#include <map>
#include <string>

#include "config/server_config.h"
#include "core/registry.h"
#include "decode/problem.h"

namespace tp::config {

// By name; cpu/default and gpu/default are always among them. Needs a file that was decoded without
// problems.
std::map<std::string, core::Executor> BuildExecutors(const ServerFile& file, const std::string& default_backend,
                                                     decode::Problems& problems);

// The executor's config as people may see it, as JSON: what looks like a secret is masked.
std::string MaskedConfig(const core::Executor& executor);

}  // namespace tp::config
