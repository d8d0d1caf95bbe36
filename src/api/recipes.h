// Steps that name a recipe of the deployment (DESIGN 8): what they leave empty is filled in at submission and
// stays so, whatever becomes of the recipe. Pure.
#pragma once

#include "absl/status/status.h"
#include "core/registry.h"
#include "tp/v1/run.pb.h"

namespace tp::api {

// INVALID_ARGUMENT: no such recipe; names the nearest and what exists.
absl::Status FillFromRecipes(const core::Registry& registry, v1::SubmitRunRequest& request);

}  // namespace tp::api
