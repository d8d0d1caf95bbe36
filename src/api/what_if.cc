#include "api/what_if.h"

#include <map>
#include <optional>

#include "api/convert.h"
#include "plan/what_if.h"

namespace tp::api {
namespace {

constexpr size_t kMaxEffects = 1000;

v1::QueueEffectKind KindMessage(plan::EffectKind kind) {
  switch (kind) {
    case plan::EffectKind::kReleased:
      return v1::QUEUE_EFFECT_KIND_RELEASED;
    case plan::EffectKind::kHeld:
      return v1::QUEUE_EFFECT_KIND_HELD;
    case plan::EffectKind::kPaused:
      return v1::QUEUE_EFFECT_KIND_PAUSED;
    case plan::EffectKind::kWithdrawn:
      return v1::QUEUE_EFFECT_KIND_WITHDRAWN;
    case plan::EffectKind::kResumed:
      return v1::QUEUE_EFFECT_KIND_RESUMED;
    case plan::EffectKind::kOpened:
      return v1::QUEUE_EFFECT_KIND_OPENED;
    case plan::EffectKind::kReshaped:
      return v1::QUEUE_EFFECT_KIND_RESHAPED;
  }
  return v1::QUEUE_EFFECT_KIND_UNSPECIFIED;
}

// The planner knows steps by number only.
void Name(store::Reader& reader, core::StepRef ref, v1::QueueEffect& effect) {
  const auto run = reader.GetRun(ref.run);
  const bool found = run.ok() && static_cast<size_t>(ref.step) < run->steps.size();
  effect.set_run(found ? run->run.id() : std::to_string(ref.run));
  if (found) effect.set_step(run->steps[static_cast<size_t>(ref.step)].spec.name);
}

v1::QueueForecast ForecastMessage(store::Reader& reader, const plan::Forecast& from) {
  v1::QueueForecast to;
  for (const auto& [kind, count] : from.counts) {
    v1::QueueEffectCount& counted = *to.add_counts();
    counted.set_kind(KindMessage(kind));
    counted.set_count(static_cast<int32_t>(count));
  }
  for (const plan::Effect& effect : from.effects) {
    v1::QueueEffect& told = *to.add_effects();
    told.set_kind(KindMessage(effect.kind));
    told.set_sentence(effect.sentence);
    if (effect.gate) told.set_gate(ToProto(*effect.gate));
    Name(reader, effect.step, told);
  }
  for (const plan::OverQuota& over : from.over) {
    v1::OverQuota& told = *to.add_over();
    told.set_user(over.user);
    told.set_what(over.what);
    told.set_used(over.used);
    told.set_limit(over.limit);
  }
  return to;
}

}  // namespace

void Foretell(Context& context, const Call& call, loop::Proposal proposal, ForetoldThen then) {
  loop::WhatIfQuery query{.who = call.principal(), .proposal = std::move(proposal)};
  context.loop.Post(std::move(query), [&context, then = std::move(then)](absl::StatusOr<loop::WhatIfAnswer> answer) {
    context.calls.Post([&context, then, answer = std::move(answer)] {
      if (!answer.ok()) return then(answer.status());
      const plan::Forecast forecast = plan::Foresee(*answer->what_if, kMaxEffects);
      then(Foretold{.note = answer->note, .forecast = ForecastMessage(context.reader, forecast)});
    });
  });
}

}  // namespace tp::api
