// A job whose event cannot be applied is held by itself, and nobody else (DESIGN 12). Until an operator lets it go
// nothing but requests is applied to it: what was seen is seen again, and an answer to an effect is kept as not
// heard. Kept in memory only: a restart tries again, perhaps of a tpd that knows better.
#include "base/status.h"
#include "loop/loop.h"

namespace tp::loop {

// Anything but a request; false: it was not applied.
bool Loop::Deliver(core::StepRef ref, const core::Event& event) {
  if (quarantined_.contains(ref)) return false;
  const absl::Status status = ApplyTo(ref, event);
  if (!status.ok()) Quarantine(ref, status);
  return status.ok();
}

void Loop::Quarantine(core::StepRef ref, const absl::Status& why) {
  ++counters_.quarantined;
  const core::Step* step = FindStep(ref);
  if (!step) return;
  std::string note(Message(why));
  quarantined_[ref] = note;
  if (note != last_notes_[ref]) Log(*step, kQuarantined, step->state, step->state, std::move(note));
}

bool Loop::LiftQuarantine(core::RunWithSteps& run) {
  bool lifted = false;
  for (const core::Step& step : run.steps) {
    if (quarantined_.erase(step.ref) == 0) continue;
    lifted = true;
    Log(step, "released", step.state, step.state, "from its quarantine");
    Reindex(run, step);
    DeliverAgain(step.ref);
  }
  if (lifted) AfterStepEnded(run);
  return lifted;
}

// Effects whose answers came while nobody would hear them, as after a restart.
void Loop::DeliverAgain(core::StepRef ref) {
  for (const auto& [id, row] : outbox_) {
    if (row.attempt.step != ref || unheard_.erase(id) == 0) continue;
    if (row.kind == store::OutboxKind::kLaunch) {
      Post(EffectAnswered{id, LaunchResult{LaunchIndeterminate{"its answer came while the job was in quarantine"}}});
    } else {
      SendLater(row, nullptr);
    }
  }
}

// As a gate, whatever the state: that is where people look for what holds a job.
std::optional<core::GateVerdict> Loop::QuarantineOf(core::StepRef ref) const {
  const auto found = quarantined_.find(ref);
  if (found == quarantined_.end()) return std::nullopt;
  return core::GateVerdict{.gate = core::GateKind::kHeld,
                           .sentence = fmt::format("in quarantine, nothing of it is followed ({}): an operator lets it "
                                                   "go with tp release, and so does a restart of tpd",
                                                   found->second),
                           .opens_at = std::nullopt,
                           .since = std::nullopt};
}

}  // namespace tp::loop
