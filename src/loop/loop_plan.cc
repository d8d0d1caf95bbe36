// Which queued steps launch now: the gates of core over everything that may have opened.
#include <algorithm>

#include "base/status.h"
#include "core/resource.h"
#include "loop/guarded.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

// Steps of equal shape find the same room: within one pass the second need not be tried.
std::string SizeOf(const core::ResolvedShape& shape, const std::string& avoid_node) {
  std::string size = avoid_node;
  for (const core::PoolShape& pool : shape.pools) {
    size += fmt::format("|{}:{}x{}", pool.series, pool.nodes, pool.gpus_per_node);
  }
  return size;
}

bool ClosedBy(const std::vector<core::GateVerdict>& closed, core::GateKind gate) {
  return std::any_of(closed.begin(), closed.end(),
                     [&](const core::GateVerdict& verdict) { return verdict.gate == gate; });
}

std::optional<absl::Time> LastOpening(const std::vector<core::GateVerdict>& closed) {
  std::optional<absl::Time> last;
  for (const core::GateVerdict& verdict : closed) {
    if (verdict.opens_at && (!last || *verdict.opens_at > *last)) last = verdict.opens_at;
  }
  return last;
}

}  // namespace

void Loop::Plan() {
  queued_.LookAtOpened(now_);
  std::set<std::string> full;  // sizes that found no room in this pass
  int launched = 0;
  while (launched < settings_.max_launches_per_turn) {
    const auto ref = queued_.Take();
    if (!ref) return;
    const absl::StatusOr<bool> launches = Guarded([&] { return Consider(*ref, full); });
    if (launches.ok()) {
      launched += *launches ? 1 : 0;
    } else {
      queued_.Keep(*ref, std::nullopt, "");  // nobody waits behind it
      Quarantine(*ref, launches.status());
    }
  }
}

core::ResolvedShape Loop::ShapeOf(const core::Step& step, std::string* why) const {
  absl::StatusOr<core::ResolvedShape> shape = core::ResolveShape(*registry_, step.spec.profiles);
  if (shape.ok()) return *std::move(shape);
  *why = std::string(Message(shape.status()));
  return {};
}

// Whether its shape resolves has changed, or why it does not.
void Loop::NoteShape(core::Step& step, const std::string& why) {
  step.hold.shape = why;
  batch_.steps.insert(step.ref);
  const bool valid = why.empty();
  Log(step, valid ? "shape released" : "shape held", step.state, step.state,
      valid ? "its shape is valid again" : fmt::format("its shape is no longer valid: {}", why));
}

absl::StatusOr<bool> Loop::Consider(core::StepRef ref, std::set<std::string>& full) {
  core::RunWithSteps& run = runs_.at(ref.run);
  core::Step& step = run.steps[static_cast<size_t>(ref.step)];
  std::string why;
  core::ResolvedShape shape = ShapeOf(step, &why);
  if (why != step.hold.shape) NoteShape(step, why);
  const std::string size = why.empty() ? SizeOf(shape, step.avoid_node) : "";
  if (full.contains(size)) {
    queued_.Keep(ref, std::nullopt, size);
    return false;
  }
  ++counters_.gate_evaluations;
  const auto closed = core::ClosedGates({run, step, why.empty() ? &shape : nullptr, capacity_, now_});
  if (closed.empty()) {
    auto placement = capacity_.Place(shape, step.avoid_node);
    TP_RETURN_IF_ERROR(Admit(step, std::move(shape), *std::move(placement)));
    return true;
  }
  const bool no_room = ClosedBy(closed, core::GateKind::kCapacity);
  if (no_room) full.insert(size);
  queued_.Keep(ref, LastOpening(closed), no_room ? size : "");
  return false;
}

absl::Status Loop::Admit(const core::Step& step, core::ResolvedShape shape, std::vector<PoolPlacement> placement) {
  core::Admitted admitted;
  admitted.key = core::AttemptKey(settings_.deployment, {step.ref, step.attempts + 1});
  admitted.nonce = nonce_();
  admitted.shape = std::move(shape);
  admitted.placement = std::move(placement);
  capacity_.Take(admitted.placement);
  absl::Status status = ApplyTo(step.ref, admitted);
  if (!status.ok()) capacity_.Release(admitted.placement);
  return status;
}

}  // namespace tp::loop
