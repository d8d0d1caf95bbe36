// The one resource flag: `[role[,role...]=]profile[:total]` (DESIGN 3), and the environment that comes
// with it. Pure. Every sentence is printed to the user as it is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry.h"
#include "core/step.h"

namespace tp::core {

// What of a backend matters to a shape.
struct BackendTraits {
  std::string_view name;
  bool several_pools = false;
  int max_nodes = 0;              // of one pool; 0: no limit
  bool needs_constraint = false;  // refuses a series without one
  bool lists_nodes = false;       // runs on the series' listed nodes only, and tpd allocates them
};

inline constexpr std::array<BackendTraits, 7> kBackends = {{
    {.name = "local", .lists_nodes = true},
    {.name = "node", .max_nodes = 8, .lists_nodes = true},
    {.name = "docker", .lists_nodes = true},
    {.name = "slurm", .several_pools = true, .needs_constraint = true},
    {.name = "kubernetes_job", .several_pools = true},
    {.name = "volcano_job", .several_pools = true},
    {.name = "ray_job", .several_pools = true},
}};

// Nothing for a name that is no backend.
const BackendTraits* FindBackend(std::string_view name);

// No flags: the profile `cpu` (kDefaultProfile) in its default shape.
// INVALID_ARGUMENT for what the user can mend: it names the flag, the near miss and what exists.
// FAILED_PRECONDITION for what an admin must: a series without the constraint that slurm needs, ...
absl::StatusOr<ResolvedShape> ResolveShape(const Registry& registry, const std::vector<std::string>& profile_flags);

// `h200:16 = 2 nodes x 8`, one line a pool, without a newline at the end.
std::string DescribeShape(const ResolvedShape& shape);

// TP_OVERRIDES_<FRAMEWORK>
std::string OverridesVariable(std::string_view framework);

// Linux takes at most 32 pages for one string of the environment, `NAME=`, value and NUL.
inline constexpr size_t kMaxVariableBytes = size_t{32} * 4096 - 1;

// Whether a user, a series or a profile may set this variable. INVALID_ARGUMENT says what is wrong with
// it, starting with its name: not a name, reserved for tp (TP_*, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER), too long.
absl::Status CheckVariable(std::string_view name, std::string_view value);

// The same for all of a submission's variables. `origin` is where the user wrote them: `--env`, `tp.yaml`.
absl::Status CheckUserEnv(const std::map<std::string, std::string>& env, std::string_view origin);

// The environment of one pool, TP_ variables not included; the last of these wins: step env (tp.yaml),
// series, profile, explicit (--env). What a series locks wins over all; INVALID_ARGUMENT when --env
// asks for another value. `notes` gets one sentence for each value of the user's that was replaced, or
// that replaces one; no values, they may be secret.
absl::StatusOr<std::map<std::string, std::string>> MergeEnv(const StepSpec& spec, const PoolShape& pool,
                                                            std::vector<std::string>* notes);

// Where a variable's value comes from.
enum class EnvOrigin : uint8_t { kProjectFile, kSeries, kProfile, kShape, kCommandLine, kLocked };

struct OriginatedValue {
  std::string value;
  EnvOrigin origin = EnvOrigin::kProjectFile;
  bool operator==(const OriginatedValue&) const = default;
};

// MergeEnv with the origin of each value. `pool` was resolved under `registry`.
absl::StatusOr<std::map<std::string, OriginatedValue>> ExplainEnv(const Registry& registry, const StepSpec& spec,
                                                                  const PoolShape& pool);

}  // namespace tp::core
