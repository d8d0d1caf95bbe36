#include "backends/driver/guarded_calls.h"

#include <exception>
#include <optional>

#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/overloaded.h"
#include "base/status.h"

namespace tp::driver {
namespace {

std::string Fault(const char* what) { return fmt::format("the backend failed: {}", what); }

// What `call` returns, or nothing and why.
template <typename Function>
auto Guard(std::string& why, Function call) -> std::optional<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& error) {
    why = Fault(error.what());
  } catch (...) {
    why = Fault("an exception of no known kind");
  }
  return std::nullopt;
}

struct Around {
  FaultPoint before;
  FaultPoint after;
};

Around PointsOf(const Call& call) {
  return std::visit(Overloaded{
                        [](const LaunchCall&) {
                          return Around{FaultPoint::kBeforeLaunch, FaultPoint::kAfterLaunch};
                        },
                        [](const FenceCall&) {
                          return Around{FaultPoint::kBeforeFence, FaultPoint::kAfterFence};
                        },
                        [](const SignalCall&) {
                          return Around{FaultPoint::kBeforeSignal, FaultPoint::kAfterSignal};
                        },
                        [](const RemoveCall&) {
                          return Around{FaultPoint::kBeforeRemove, FaultPoint::kAfterRemove};
                        },
                    },
                    call);
}

}  // namespace

loop::EffectResult Perform(Backend& backend, const Call& call, const AttemptTarget& target, absl::Time deadline) {
  std::string why;
  const Around points = PointsOf(call);
  ReachFaultPoint(points.before);
  std::optional<loop::EffectResult> result = Guard(why, [&]() -> loop::EffectResult {
    return std::visit(
        Overloaded{
            [&](const LaunchCall& launch) -> loop::EffectResult { return backend.Launch(launch.spec, deadline); },
            [&](const FenceCall&) -> loop::EffectResult { return backend.Fence(target, deadline); },
            [&](const SignalCall& signal) -> loop::EffectResult {
              return backend.Stop(target, signal.level, deadline);
            },
            [&](const RemoveCall&) -> loop::EffectResult { return backend.Remove(target, deadline); },
        },
        call);
  });
  ReachFaultPoint(points.after);
  return result ? *std::move(result) : LostAnswer(call, why);
}

loop::EffectResult LostAnswer(const Call& call, std::string_view why) {
  return std::visit(
      Overloaded{
          [&](const LaunchCall&) -> loop::EffectResult { return LaunchResult{LaunchIndeterminate{std::string(why)}}; },
          [&](const FenceCall&) -> loop::EffectResult { return FenceResult{FenceFailed{std::string(why)}}; },
          [&](const SignalCall&) -> loop::EffectResult { return Unavailable("{}", why); },
          [&](const RemoveCall&) -> loop::EffectResult { return Unavailable("{}", why); },
      },
      call);
}

loop::EffectResult NotSent(const Call& call, std::string_view why) {
  if (std::holds_alternative<LaunchCall>(call)) return LaunchResult{LaunchRefused{std::string(why)}};
  return LostAnswer(call, why);
}

std::vector<Observation> ObserveAll(Backend& backend, const std::vector<AttemptTarget>& targets, absl::Time deadline) {
  std::string why;
  ReachFaultPoint(FaultPoint::kBeforeLook);
  std::optional<std::vector<Observation>> seen = Guard(why, [&] { return backend.Observe(targets, deadline); });
  ReachFaultPoint(FaultPoint::kAfterLook);
  if (seen && seen->size() == targets.size()) return *std::move(seen);
  if (seen) why = fmt::format("the backend gave {} observations of {} attempts", seen->size(), targets.size());
  if (targets.size() == 1) return {Unknown{why}};
  // One of them may be at fault; the others are seen all the same.
  std::vector<Observation> single;
  single.reserve(targets.size());
  for (const AttemptTarget& target : targets) {
    single.push_back(std::move(ObserveAll(backend, {target}, deadline).front()));
  }
  return single;
}

}  // namespace tp::driver
