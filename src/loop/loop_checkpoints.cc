// Checkpoints of live steps, as scans of their output saw them: told to people, no part in what becomes of a job. Kept
// in memory: another scan sees them again.
#include "core/windows.h"
#include "loop/loop.h"

namespace tp::loop {

void Loop::TakeCheckpoints(const CheckpointsSeen& seen) {
  for (const auto& [ref, sight] : seen.seen) {
    const core::Step* step = FindStep(ref);
    // What ended or was launched anew since then is looked at in the next round.
    const bool present = step != nullptr && step->attempts == sight.attempt && !core::IsTerminal(step->state);
    if (present) TakeSight(*step, sight);
  }
}

void Loop::TakeSight(const core::Step& step, const core::CheckpointSight& sight) {
  KnownCheckpoints& known = checkpoints_[step.ref];
  if (known.sight.attempt != sight.attempt) known = {};
  known.sight = sight;
  const auto span = core::SpanOf(step, now_);
  if (!span) return;
  if (step.attempt) {
    const core::WindowStanding window = planner_.StandingOf(step.attempt->shape, now_);
    const bool closes = window.open && window.edge;
    std::string warning = closes ? core::WindowWarning(sight, *span, *window.edge) : "";
    if (known.warned || warning.empty()) return;
    known.warned = true;
    Log(step, "warning", step.state, step.state, std::move(warning));
  } else if (step.state == core::JobState::kPaused && sight.after_end && !known.told) {
    known.told = true;
    if (step.entered_at < first_turn_at_) return;  // tpd's last life has told
    Log(step, "checkpoint", step.state, step.state, core::LossSentence(sight, *span));
  }
}

std::optional<core::CheckpointSight> Loop::CheckpointsOf(const core::Step& step) const {
  const auto found = checkpoints_.find(step.ref);
  if (found == checkpoints_.end() || found->second.sight.attempt != step.attempts) return std::nullopt;
  return found->second.sight;
}

}  // namespace tp::loop
