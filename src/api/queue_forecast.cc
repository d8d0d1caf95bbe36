#include "api/queue_forecast.h"

#include <optional>

#include "base/status.h"
#include "core/resource.h"
#include "store/each_run.h"

namespace tp::api {
namespace {

constexpr int kMaxEffects = 100;

bool Waits(const core::Step& step) {
  return step.state == core::JobState::kQueued || step.state == core::JobState::kPaused;
}

std::optional<v1::QueueEffect> EffectOn(const core::Step& step, const ReloadPlan& plan) {
  const auto before = core::ResolveShape(*plan.current, step.spec.profiles);
  const auto after = core::ResolveShape(*plan.candidate, step.spec.profiles);
  v1::QueueEffect effect;
  if (!after.ok()) {
    if (!before.ok()) return std::nullopt;
    effect.set_kind(v1::QUEUE_EFFECT_KIND_HELD);
    effect.set_sentence(std::string(Message(after.status())));
  } else if (!before.ok()) {
    effect.set_kind(v1::QUEUE_EFFECT_KIND_RELEASED);
    effect.set_sentence(core::DescribeShape(*after));
  } else if (*before != *after) {
    effect.set_kind(v1::QUEUE_EFFECT_KIND_RESHAPED);
    const std::string now = core::DescribeShape(*before);
    const std::string then = core::DescribeShape(*after);
    effect.set_sentence(now == then ? then + ", with other settings" : then + ", now " + now);
  } else {
    return std::nullopt;
  }
  return effect;
}

void ForecastRun(const core::RunWithSteps& run, const ReloadPlan& plan, v1::ReloadConfigurationResponse* response) {
  for (const core::Step& step : run.steps) {
    if (!Waits(step)) continue;
    std::optional<v1::QueueEffect> effect = EffectOn(step, plan);
    if (!effect) continue;
    response->set_queue_effect_count(response->queue_effect_count() + 1);
    if (response->queue_effects_size() == kMaxEffects) continue;
    effect->set_run(run.run.id());
    effect->set_step(step.spec.name);
    *response->add_queue_effects() = *std::move(effect);
  }
}

}  // namespace

absl::Status ForecastQueue(store::Reader& reader, const ReloadPlan& plan, v1::ReloadConfigurationResponse* response) {
  if (plan.changes.empty()) return absl::OkStatus();
  store::RunFilter waiting;
  waiting.words = {core::RunWord::kQueued, core::RunWord::kPaused};
  return store::EachRun(reader, waiting, [&](const core::RunWithSteps& run) {
    ForecastRun(run, plan, response);
    return absl::OkStatus();
  });
}

}  // namespace tp::api
