#include "sim/sink.h"

#include <utility>

#include "base/overloaded.h"
#include "base/status.h"
#include "sim/units.h"

namespace tp::sim {
namespace {

constexpr Span kLateObject = {100 * kMillisecond, 2 * kMinute};
// Less than any absent_grace: two answers that count as a grace apart were really made apart.
constexpr Span kLateObservation = {kMillisecond, 2 * kSecond};

constexpr std::string_view kCallNames[] = {"launch", "fence", "signal", "remove", "observe", "look"};

std::string Describe(const loop::EffectResult& result) {
  return std::visit(Overloaded{
                        [](const LaunchResult& launch) {
                          constexpr std::string_view kNames[] = {"accepted", "rejected", "refused", "indeterminate"};
                          return std::string(kNames[launch.index()]);
                        },
                        [](const FenceResult& fence) {
                          constexpr std::string_view kNames[] = {"won", "lost", "failed"};
                          return std::string(kNames[fence.index()]);
                        },
                        [](const absl::Status& status) { return std::string(status.ok() ? "done" : "failed"); },
                    },
                    result);
}

std::string Describe(const Observation& observation) {
  constexpr std::string_view kNames[] = {"present", "absent", "unknown"};
  std::string text(kNames[observation.index()]);
  if (const auto* present = std::get_if<Present>(&observation)) {
    text += fmt::format(
        " claim {}{}{}", static_cast<int>(present->claim), present->freed ? " freed" : "",
        present->engine_end == EngineEnd::kNone ? "" : fmt::format(" end {}", static_cast<int>(present->engine_end)));
  }
  return text;
}

}  // namespace

SimSink::SimSink(const Options& options, Timeline& timeline, Rng& rng, Journal& journal, World& world)
    : options_(options), timeline_(timeline), rng_(rng), journal_(journal), world_(world) {}

void SimSink::Die() {
  ++life_;
  lines_.clear();
  tracked_.clear();
}

// --- Calls ----------------------------------------------------------------------------------------

void SimSink::Launch(int64_t outbox_id, const std::string&, const LaunchSpec& spec, const AttemptTarget& target) {
  check_(target, spec);
  Enqueue({Kind::kLaunch, outbox_id, target, StopLevel::kTerm, spec});
}
void SimSink::Fence(int64_t outbox_id, const std::string&, const AttemptTarget& target) {
  Enqueue({Kind::kFence, outbox_id, target, StopLevel::kTerm, {}});
}
void SimSink::Signal(int64_t outbox_id, const std::string&, const AttemptTarget& target, StopLevel level) {
  Enqueue({Kind::kSignal, outbox_id, target, level, {}});
}
void SimSink::Remove(int64_t outbox_id, const std::string&, const AttemptTarget& target) {
  Enqueue({Kind::kRemove, outbox_id, target, StopLevel::kTerm, {}});
}

void SimSink::Enqueue(Call call) {
  const std::string key = call.target.key;
  lines_[key].waiting.push_back(std::move(call));
  Next(key);
}

void SimSink::Next(const std::string& key) {
  Line& line = lines_[key];
  if (line.busy || line.waiting.empty()) return;
  line.busy = true;
  Call call = std::move(line.waiting.front());
  line.waiting.pop_front();
  if (call.kind == Kind::kLaunch) ++world_.Prepare(call.target, call.spec).coming;
  timeline_.In(rng_.Draw(options_.pace.call), [this, life = life_, call = std::move(call)] {
    if (life != life_) {
      // The request had left before tpd died, or it had not.
      if (rng_.Chance(500)) {
        journal_.Note("sink: {} {} takes effect after its tpd", kCallNames[static_cast<size_t>(call.kind)],
                      call.target.key);
        CarryOut(call);
      } else if (call.kind == Kind::kLaunch) {
        --world_.Prepare(call.target, call.spec).coming;
      }
      return;
    }
    Result result = CarryOut(call);
    timeline_.In(rng_.Draw(options_.pace.call), [this, life, call, result = std::move(result)] {
      if (life != life_) return;
      Deliver(call, result);
      lines_[call.target.key].busy = false;
      Next(call.target.key);
    });
  });
}

SimSink::Result SimSink::CarryOut(const Call& call) {
  const std::string& key = call.target.key;
  switch (call.kind) {
    case Kind::kLaunch:
      return CarryOutLaunch(call);
    case Kind::kFence:
      return loop::EffectResult(CarryOutFence(call));
    case Kind::kSignal:
      return loop::EffectResult(CarryOutOrFail([&] { world_.Signal(key, call.level); }));
    case Kind::kRemove:
      return loop::EffectResult(CarryOutOrFail([&] { world_.Remove(key); }));
    case Kind::kObserve:
      return world_.Look(call.target);
    case Kind::kLook:
      world_.Left(key);
      return world_.Look(call.target);
  }
  return Observation(Unknown{});
}

loop::EffectResult SimSink::CarryOutLaunch(const Call& call) {
  const EngineFaults& faults = options_.engine;
  const std::string& nonce = call.target.nonce;
  AttemptTruth& attempt = world_.Prepare(call.target, call.spec);
  if (world_.engine_down()) {
    if (rng_.Chance(500)) return LaunchResult(Indeterminate(attempt, nonce));
    --attempt.coming;
    return LaunchResult(LaunchRefused{"the engine does not answer"});
  }
  if (rng_.Chance(faults.rejected)) {
    return LaunchResult(Rejected(attempt, static_cast<LaunchRejected::Kind>(rng_.Between(0, 2))));
  }
  if (attempt.ref.attempt > 1 && rng_.Chance(faults.storage_full)) {
    return LaunchResult(Rejected(attempt, LaunchRejected::Kind::kStorage));
  }
  if (rng_.Chance(faults.refused)) {
    --attempt.coming;
    return LaunchResult(LaunchRefused{"the engine is full"});
  }
  if (rng_.Chance(faults.indeterminate)) return LaunchResult(Indeterminate(attempt, nonce));
  return LaunchResult(Accepted(attempt, nonce));
}

LaunchResult SimSink::Rejected(AttemptTruth& attempt, LaunchRejected::Kind kind) {
  --attempt.coming;
  attempt.rejected = kind;
  return LaunchRejected{kind, "the engine will never take this"};
}

LaunchResult SimSink::Indeterminate(AttemptTruth& attempt, const std::string& nonce) {
  switch (rng_.Between(0, 2)) {
    case 0:
      --attempt.coming;
      break;
    case 1:
      CreateNow(attempt, nonce, 0);
      break;
    default:
      CreateLater(attempt, nonce, rng_.Draw(kLateObject));
      break;
  }
  return LaunchIndeterminate{"the answer was lost"};
}

LaunchResult SimSink::Accepted(AttemptTruth& attempt, const std::string& nonce) {
  if (!rng_.Chance(options_.engine.late_object)) {
    CreateNow(attempt, nonce, 0);
  } else if (rng_.Chance(500)) {
    CreateNow(attempt, nonce, rng_.Draw(kLateObject));
  } else {
    CreateLater(attempt, nonce, rng_.Draw(kLateObject));
  }
  return LaunchAccepted{};
}

void SimSink::CreateLater(AttemptTruth& attempt, const std::string& nonce, int64_t after_us) {
  timeline_.In(after_us, [this, &attempt, nonce] { CreateNow(attempt, nonce, 0); });
}

void SimSink::CreateNow(AttemptTruth& attempt, const std::string& nonce, int64_t listed_after_us) {
  --attempt.coming;
  world_.Create(attempt, nonce, listed_after_us);
  if (rng_.Chance(options_.engine.doubled)) world_.Create(attempt, nonce, listed_after_us);
}

FenceResult SimSink::CarryOutFence(const Call& call) {
  if (!rng_.Chance(options_.engine.call_fails)) return world_.Fence(call.target);
  if (rng_.Chance(500)) world_.Fence(call.target);
  return FenceFailed{"the storage reported an error"};
}

absl::Status SimSink::CarryOutOrFail(const std::function<void()>& effect) {
  if (world_.engine_down()) return Unavailable("the engine does not answer");
  if (!rng_.Chance(options_.engine.call_fails)) {
    effect();
    return absl::OkStatus();
  }
  if (rng_.Chance(500)) effect();
  return Unavailable("the answer was lost");
}

void SimSink::Deliver(const Call& call, const Result& result) {
  const std::string& key = call.target.key;
  if (const auto* answer = std::get_if<loop::EffectResult>(&result)) {
    journal_.Note("sink: {} {} {}", kCallNames[static_cast<size_t>(call.kind)], key, Describe(*answer));
    const loop::EffectAnswered message{call.outbox_id, *answer};
    ears_.answered(message);
    if (!rng_.Chance(options_.engine.doubled_answer)) return;
    timeline_.In(rng_.Draw(options_.pace.call), [this, life = life_, message] {
      if (life == life_) ears_.answered(message);
    });
    return;
  }
  if (call.kind == Kind::kObserve) {
    const auto tracked = tracked_.find(key);
    if (tracked == tracked_.end()) return;
    tracked->second.asked = false;
  }
  DeliverObservation(key, std::get<Observation>(result));
}

void SimSink::DeliverObservation(const std::string& key, const Observation& observation) {
  const int64_t late_us = rng_.Chance(options_.engine.late_observation) ? rng_.Draw(kLateObservation) : 0;
  timeline_.In(late_us, [this, life = life_, message = loop::AttemptObserved{key, observation}] {
    if (life != life_) return;
    journal_.Note("sink: {} {}", message.key, Describe(message.observation));
    ears_.observed(message);
  });
}

// --- Observing ------------------------------------------------------------------------------------

void SimSink::Track(const std::string&, const AttemptTarget& target) {
  const auto [entry, added] = tracked_.try_emplace(target.key);
  entry->second.target = target;
  if (added) Poll(target.key);
}

void SimSink::Untrack(const std::string& key) { tracked_.erase(key); }

void SimSink::Look(const std::string&, const AttemptTarget& target) {
  Enqueue({Kind::kLook, 0, target, StopLevel::kTerm, {}});
}

void SimSink::Poll(const std::string& key) {
  if (!tracked_.contains(key)) return;
  AskFor(key);
  timeline_.In(rng_.Draw(options_.pace.observe_every), [this, life = life_, key] {
    if (life == life_) Poll(key);
  });
}

void SimSink::AskFor(const std::string& key) {
  const auto tracked = tracked_.find(key);
  if (tracked == tracked_.end() || tracked->second.asked) return;
  tracked->second.asked = true;
  Enqueue({Kind::kObserve, 0, tracked->second.target, StopLevel::kTerm, {}});
}

void SimSink::Wake(const std::string& key) {
  timeline_.In(rng_.Draw(options_.pace.wake), [this, life = life_, key] {
    if (life == life_) AskFor(key);
  });
}

}  // namespace tp::sim
