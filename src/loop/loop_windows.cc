// Windows over what is live (DESIGN 4, 6): a closing one withdraws or pauses, an opening one resumes what it
// paused. Judged by what holds now, so that a missed moment is made up for.
#include <algorithm>

#include "core/windows.h"
#include "loop/loop.h"

namespace tp::loop {
namespace {

// In bulk they are spread, so that neither storage nor engines get all at once.
constexpr absl::Duration kSpreadPerStep = absl::Milliseconds(50);
constexpr absl::Duration kLongestSpread = absl::Seconds(10);

bool PausedByWindow(const core::Step& step) { return step.state == core::JobState::kPaused && step.pause.window; }

}  // namespace

absl::Duration Loop::JitterOf(core::StepRef ref) const {
  const absl::Duration spread =
      std::min(kLongestSpread, kSpreadPerStep * static_cast<int64_t>(window_timers_.all().size()));
  const uint64_t mixed = (static_cast<uint64_t>(ref.run) * 31 + static_cast<uint64_t>(ref.step)) * 0x9e3779b97f4a7c15;
  return spread * static_cast<int64_t>(mixed >> 54) / 1024;
}

// What its window asks for now.
std::optional<core::Event> Loop::DueByWindow(const core::RunWithSteps& run, const core::Step& step,
                                             const core::ResolvedShape& shape) const {
  const bool open = planner_.StandingOf(shape, now_).open;
  if (step.attempt) {
    if (open || step.attempt->ending || step.pause.window || step.stop_requested) return std::nullopt;
    return core::PauseRequested{core::Holder::kWindow, core::PauseGrace(planner_.ScheduleOf(shape, now_))};
  }
  const bool may_resume = PausedByWindow(step) && run.run.snapshot_available;
  if (!may_resume || !open || now_ < step.entered_at + settings_.policy.min_flip) return std::nullopt;
  return core::ResumeRequested{core::Holder::kWindow, true};
}

// The shape that the hours are those of: the frozen one while there is an attempt, which is not copied.
template <typename Look>
auto Loop::WithWindowShape(const core::Step& step, const Look& look) const {
  if (step.attempt) return look(step.attempt->shape);
  std::string why;
  return look(ShapeOf(step, &why));
}

// When to look again; nothing: no window has a say.
std::optional<absl::Time> Loop::NextByWindow(const core::RunWithSteps& run, const core::Step& step) const {
  if (!step.attempt && !(PausedByWindow(step) && run.run.snapshot_available)) return std::nullopt;
  return WithWindowShape(step, [&](const core::ResolvedShape& shape) -> std::optional<absl::Time> {
    if (planner_.ScheduleOf(shape, now_).empty() && step.attempt) return std::nullopt;
    if (DueByWindow(run, step, shape)) return now_ + JitterOf(step.ref);
    const core::WindowStanding standing = planner_.StandingOf(shape, now_);
    absl::Time next = standing.edge.value_or(absl::InfiniteFuture());
    if (PausedByWindow(step) && standing.open) next = std::max(now_, step.entered_at + settings_.policy.min_flip);
    if (next != absl::InfiniteFuture()) next += JitterOf(step.ref);
    return next;
  });
}

// A time that was set for what still holds stays: the jitter is not begun anew with every sight of the job.
void Loop::WatchWindow(const core::RunWithSteps& run, const core::Step& step) {
  const auto next = NextByWindow(run, step);
  if (!next) return window_timers_.Drop(step.ref);
  const auto set = window_timers_.Of(step.ref);
  if (set && *set >= now_ && *set <= *next) return;
  window_timers_.Set(step.ref, *next);
}

void Loop::WatchAllWindows() {
  window_timers_.Clear();
  for (const auto& [n, run] : runs_) {
    for (const core::Step& step : run.steps) WatchWindow(run, step);
  }
}

void Loop::TakeWindows() {
  for (const core::StepRef& ref : window_timers_.AllDue(now_)) {
    window_timers_.Drop(ref);
    const core::Step* step = FindStep(ref);
    if (!step) continue;
    const core::RunWithSteps& run = runs_.at(ref.run);
    const auto event =
        WithWindowShape(*step, [&](const core::ResolvedShape& shape) { return DueByWindow(run, *step, shape); });
    if (event) Deliver(ref, *event);
    const core::Step* after = FindStep(ref);
    if (!after || window_timers_.Of(ref)) continue;
    // Nothing came of what was due: it is not tried again at once.
    const std::optional<absl::Time> next = NextByWindow(run, *after);
    if (next) window_timers_.Set(ref, std::max(*next, now_ + absl::Seconds(1)));
  }
}

}  // namespace tp::loop
