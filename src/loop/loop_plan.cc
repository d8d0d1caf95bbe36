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

void Loop::ConsiderAll() {
  for (const auto& [order, opening] : waiting_) to_consider_.insert(order);
}

void Loop::Plan() {
  while (!openings_.empty() && openings_.begin()->first <= now_) {
    const Order order = openings_.begin()->second;
    LookAgain(order, std::nullopt);
    to_consider_.insert(order);
  }
  std::set<std::string> full;  // sizes that found no room in this pass
  int launched = 0;
  while (!to_consider_.empty() && launched < settings_.max_launches_per_turn) {
    const Order order = *to_consider_.begin();
    to_consider_.erase(to_consider_.begin());
    const absl::StatusOr<bool> launches = Guarded([&] { return Consider(order, full); });
    if (!launches.ok()) Quarantine(std::get<core::StepRef>(order), launches.status());
    if (launches.value_or(false)) ++launched;
  }
}

void Loop::LookAgain(const Order& order, std::optional<absl::Time> at) {
  std::optional<absl::Time>& opening = waiting_.at(order);
  if (opening) openings_.erase({*opening, order});
  opening = at;
  if (opening) openings_.emplace(*opening, order);
}

core::ResolvedShape Loop::ShapeOf(const core::Step& step, std::string* why) const {
  absl::StatusOr<core::ResolvedShape> shape = core::ResolveShape(*registry_, step.spec.profiles);
  if (shape.ok()) return *std::move(shape);
  *why = std::string(Message(shape.status()));
  return {};
}

absl::StatusOr<bool> Loop::Consider(const Order& order, std::set<std::string>& full) {
  const core::StepRef ref = std::get<core::StepRef>(order);
  core::Step* step = FindStep(ref);
  if (!step || step->state != core::JobState::kQueued) return false;
  const core::RunWithSteps& run = runs_.at(ref.run);
  std::string why;
  core::ResolvedShape shape = ShapeOf(*step, &why);
  if (why != step->hold.shape) {
    step->hold.shape = why;
    batch_.steps.insert(ref);
    batch_.changed = true;
  }
  const bool resolves = why.empty();
  if (resolves && full.contains(SizeOf(shape, step->avoid_node))) return false;
  ++counters_.gate_evaluations;
  const auto closed = core::ClosedGates({run, *step, resolves ? &shape : nullptr, capacity_, now_});
  LookAgain(order, LastOpening(closed));
  if (ClosedBy(closed, core::GateKind::kCapacity)) full.insert(SizeOf(shape, step->avoid_node));
  if (!closed.empty()) return false;
  auto placement = capacity_.Place(shape, step->avoid_node);
  Admit(*step, std::move(shape), *std::move(placement));
  return true;
}

void Loop::Admit(const core::Step& step, core::ResolvedShape shape,
                 std::vector<PoolPlacement> placement) {
  const core::StepRef ref = step.ref;
  core::Admitted admitted;
  admitted.key = core::AttemptKey(settings_.deployment, {ref, step.attempts + 1});
  admitted.nonce = nonce_();
  admitted.shape = std::move(shape);
  admitted.placement = std::move(placement);
  capacity_.Take(admitted.placement);
  if (absl::Status status = ApplyTo(ref, admitted); !status.ok()) {
    capacity_.Release(admitted.placement);
    Quarantine(ref, status);
  }
}

}  // namespace tp::loop
