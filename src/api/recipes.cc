#include "api/recipes.h"

#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "api/convert.h"
#include "api/errors.h"
#include "base/near_miss.h"
#include "base/printable.h"

namespace tp::api {
namespace {

std::vector<std::string> NamesOf(const core::Registry& registry) {
  std::vector<std::string> names;
  names.reserve(registry.recipes.size());
  for (const auto& [name, recipe] : registry.recipes) names.push_back(name);
  return names;
}

absl::Status UnknownRecipe(const core::Registry& registry, const std::string& field, const std::string& name) {
  const std::vector<std::string> names = NamesOf(registry);
  std::string hint;
  if (const auto near = NearMiss(name, names)) hint = fmt::format("did you mean {}? ", *near);
  const std::string existing =
      names.empty() ? "this deployment has none" : fmt::format("recipes here are {}", fmt::join(names, ", "));
  return FieldError(field, "no recipe is called {}: {}{}; or describe the step in tp.yaml", Quoted(name), hint,
                    existing);
}

void Fill(const core::Recipe& recipe, v1::StepSpec& step) {
  if (step.argv().empty()) step.mutable_argv()->Add(recipe.argv.begin(), recipe.argv.end());
  if (step.profiles().empty()) step.mutable_profiles()->Add(recipe.profiles.begin(), recipe.profiles.end());
  if (!recipe.image.empty()) step.set_image(recipe.image);
  for (const auto& [name, value] : recipe.env) step.mutable_env()->try_emplace(name, value);
  if (recipe.time_limit && !step.has_time_limit()) *step.mutable_time_limit() = ToProto(*recipe.time_limit);
}

}  // namespace

absl::Status FillFromRecipes(const core::Registry& registry, v1::SubmitRunRequest& request) {
  for (int index = 0; index < request.steps_size(); ++index) {
    v1::StepSpec& step = *request.mutable_steps(index);
    if (step.recipe().empty()) continue;
    const auto found = registry.recipes.find(step.recipe());
    if (found == registry.recipes.end()) {
      return UnknownRecipe(registry, fmt::format("steps[{}].recipe", index), step.recipe());
    }
    if (step.name().empty()) step.set_name(step.recipe());
    Fill(found->second, step);
    step.clear_recipe();
  }
  return absl::OkStatus();
}

}  // namespace tp::api
