#include "api/submit_plan.h"

#include <optional>
#include <vector>

#include "api/committed_capacity.h"
#include "base/secret_names.h"
#include "base/status.h"
#include "core/resource.h"

namespace tp::api {
namespace {

v1::VariableOrigin OriginOf(core::EnvOrigin origin) {
  switch (origin) {
    case core::EnvOrigin::kProjectFile:
      return v1::VARIABLE_ORIGIN_PROJECT_FILE;
    case core::EnvOrigin::kSeries:
      return v1::VARIABLE_ORIGIN_SERIES;
    case core::EnvOrigin::kProfile:
      return v1::VARIABLE_ORIGIN_PROFILE;
    case core::EnvOrigin::kShape:
      return v1::VARIABLE_ORIGIN_SHAPE;
    case core::EnvOrigin::kCommandLine:
      return v1::VARIABLE_ORIGIN_COMMAND_LINE;
    case core::EnvOrigin::kLocked:
      return v1::VARIABLE_ORIGIN_LOCKED;
  }
  return v1::VARIABLE_ORIGIN_UNSPECIFIED;
}

absl::Status AddEnvironment(const core::Registry& registry, const core::StepSpec& spec, const core::PoolShape& pool,
                            v1::PoolPlan* to) {
  TP_ASSIGN_OR_RETURN(const auto environment, core::ExplainEnv(registry, spec, pool));
  for (const auto& [name, variable] : environment) {
    v1::PlannedVariable* planned = to->add_environment();
    planned->set_name(name);
    planned->set_value(LooksSecret(name, variable.value) ? std::string(kMaskedValue) : variable.value);
    planned->set_origin(OriginOf(variable.origin));
  }
  return absl::OkStatus();
}

void AddOverrides(const core::PoolShape& pool, v1::PoolPlan* to) {
  for (const auto& [framework, json] : pool.overrides_json) {
    v1::PlannedOverrides* planned = to->add_overrides();
    planned->set_framework(framework);
    planned->set_json(json);
    const auto text = pool.overrides_env.find(core::OverridesVariable(framework));
    if (text != pool.overrides_env.end()) planned->set_text(text->second);
  }
}

void AddRanks(const PoolPlacement& placement, v1::PoolPlan* to) {
  for (size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    v1::PlannedRank* planned = to->add_ranks();
    planned->set_rank(static_cast<int32_t>(rank));
    planned->set_node(placement.ranks[rank].node);
    for (const int card : placement.ranks[rank].cards) planned->add_cards(card);
  }
}

absl::Status AddPool(const core::Registry& registry, const core::StepSpec& spec, const core::PoolShape& pool,
                     v1::PoolPlan* to) {
  for (const std::string& role : pool.roles) to->add_roles(role);
  to->set_profile(pool.profile);
  to->set_series(pool.series);
  to->set_nodes(static_cast<int32_t>(pool.nodes));
  to->set_gpus_per_node(pool.gpus_per_node);
  AddOverrides(pool, to);
  return AddEnvironment(registry, spec, pool, to);
}

}  // namespace

absl::Status AddPlan(store::Reader& reader, const core::Registry& registry, const loop::LiveRun& run,
                     google::protobuf::RepeatedPtrField<v1::StepPlan>* plans) {
  TP_ASSIGN_OR_RETURN(const core::Capacity capacity, CommittedCapacity(reader, registry));
  for (size_t i = 0; i < run.shapes.size(); ++i) {
    const core::StepSpec& spec = run.run.steps[i].spec;
    const core::ResolvedShape& shape = run.shapes[i];
    v1::StepPlan* plan = plans->Add();
    plan->set_step(spec.name);
    plan->set_executor(shape.executor);
    plan->set_backend(shape.backend);
    const std::optional<std::vector<PoolPlacement>> places = capacity.Place(shape, "");
    for (size_t pool = 0; pool < shape.pools.size(); ++pool) {
      v1::PoolPlan* to = plan->add_pools();
      TP_RETURN_IF_ERROR(AddPool(registry, spec, shape.pools[pool], to));
      if (places) AddRanks((*places)[pool], to);
    }
  }
  return absl::OkStatus();
}

}  // namespace tp::api
