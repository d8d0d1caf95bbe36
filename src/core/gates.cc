#include "core/gates.h"

#include <fmt/format.h>

#include "core/resource.h"

namespace tp::core {
namespace {

const Step& DependedOn(const RunWithSteps& run, const Step& step) {
  return run.steps[static_cast<size_t>(step.spec.after->step)];
}

std::optional<GateVerdict> DependencyGate(const GateInput& in) {
  if (Dependency(in.run, in.step) != DependencyState::kWaiting) return std::nullopt;
  const Step& other = DependedOn(in.run, in.step);
  return GateVerdict{
      GateKind::kDependency,
      fmt::format("waits for step {} ({}), which is {}", other.ref.step + 1, other.spec.name, Name(other.state)),
      std::nullopt};
}

std::optional<GateVerdict> HeldGate(const GateInput& in) {
  const Hold& hold = in.step.hold;
  if (!hold.shape.empty()) {
    return GateVerdict{GateKind::kHeld,
                       fmt::format("its shape is no longer valid: {}; change it with tp update --profile", hold.shape),
                       std::nullopt};
  }
  if (hold.admin) return GateVerdict{GateKind::kHeld, "held by an admin, who can release it", std::nullopt};
  if (hold.owner) return GateVerdict{GateKind::kHeld, "held by its owner: tp release lets it go", std::nullopt};
  return std::nullopt;
}

std::optional<GateVerdict> CooldownGate(const GateInput& in) {
  const auto& until = in.step.cooldown_until;
  if (!until || *until <= in.now) return std::nullopt;
  return GateVerdict{GateKind::kCooldown,
                     fmt::format("retry {} waits {} more seconds after the failure", in.step.retry_count,
                                 absl::ToInt64Seconds(absl::Ceil(*until - in.now, absl::Seconds(1)))),
                     until};
}

std::optional<GateVerdict> BackendGate(const GateInput& in) {
  const auto& until = in.step.backoff_until;
  if (!until || *until <= in.now) return std::nullopt;
  return GateVerdict{GateKind::kBackend,
                     fmt::format("launch {} did not come up ({}); the next try is in {} s", in.step.attempts,
                                 in.step.backoff_reason.empty() ? "no reason given" : in.step.backoff_reason,
                                 absl::ToInt64Seconds(absl::Ceil(*until - in.now, absl::Seconds(1)))),
                     until};
}

std::string Count(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string CapacitySentence(const GateInput& in) {
  std::string sentence;
  for (const PoolShape& pool : in.shape->pools) {
    if (!sentence.empty()) sentence += "; ";
    const bool cpu = pool.gpus_per_node == 0;
    sentence +=
        fmt::format("{} needs {}, {} of {} {} are free", pool.series,
                    cpu ? Count(pool.nodes, "node")
                        : fmt::format("{} x {}", Count(pool.nodes, "node"), Count(pool.gpus_per_node, "card")),
                    in.capacity.FreeCards(pool.series), in.capacity.TotalCards(pool.series), cpu ? "places" : "cards");
  }
  return sentence + (in.capacity.CouldEverFit(*in.shape)
                         ? "; starts when cards are released"
                         : "; more than the series has: change it with tp update --profile");
}

std::optional<GateVerdict> CapacityGate(const GateInput& in) {
  if (!in.shape || in.capacity.Place(*in.shape, in.step.avoid_node)) return std::nullopt;
  return GateVerdict{GateKind::kCapacity, CapacitySentence(in), std::nullopt};
}

}  // namespace

DependencyState Dependency(const RunWithSteps& run, const Step& step) {
  if (!step.spec.after) return DependencyState::kMet;
  const JobState state = DependedOn(run, step).state;
  if (!IsTerminal(state)) return DependencyState::kWaiting;
  const bool succeeded = state == JobState::kSucceeded;
  switch (step.spec.after->when) {
    case AfterWhen::kSuccess:
      return succeeded ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kFailure:
      return state == JobState::kFailed ? DependencyState::kMet : DependencyState::kImpossible;
    case AfterWhen::kAlways:
      return DependencyState::kMet;
  }
  return DependencyState::kWaiting;
}

std::vector<GateVerdict> ClosedGates(const GateInput& input) {
  std::vector<GateVerdict> closed;
  for (auto gate : {DependencyGate, HeldGate, CooldownGate, CapacityGate, BackendGate}) {
    if (auto verdict = gate(input)) closed.push_back(*std::move(verdict));
  }
  return closed;
}

}  // namespace tp::core
