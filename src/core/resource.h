// The one resource flag: `[role[,role...]=]profile[:total]` (DESIGN 3). Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

// What backends can do matters to a shape (several pools).
struct BackendTraits {
  bool several_pools = false;
  int max_nodes = 0;  // of one pool; 0: no limit
};
BackendTraits TraitsOfBackend(std::string_view backend);

// INVALID_ARGUMENT names the flag, the near miss and what exists. No flags: the default cpu executor,
// one node. `capacity_managed` backends refuse more nodes than the series has.
absl::StatusOr<ResolvedShape> ResolveShape(const Registry& registry, const std::vector<std::string>& profile_flags);

// `h200:16 = 2 nodes x 8`, one line a pool.
std::string DescribeShape(const ResolvedShape& shape);

// The environment of one pool, TP_ variables not included: step env < series < profile < explicit,
// `locked_env` last. FAILED_PRECONDITION-free: an explicit value over a locked one is INVALID_ARGUMENT.
// `notes` gets one sentence for each value that was replaced.
absl::StatusOr<std::map<std::string, std::string>> MergeEnv(const StepSpec& spec, const PoolShape& pool,
                                                            std::vector<std::string>* notes);

}  // namespace tp::core
