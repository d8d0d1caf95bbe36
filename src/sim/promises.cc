#include "sim/promises.h"

namespace tp::sim {

int64_t Promises::Sent(Ask ask, int64_t run, const std::string& request_id) {
  const int64_t order = next_++;
  first_sent_.emplace(request_id, order);
  if (ask == Ask::kRetry) runs_[run].last_retry = order;
  if (ask == Ask::kResume) runs_[run].last_resume = order;
  return order;
}

void Promises::Submitted(const std::string& request_id, int64_t run) {
  const auto [known, added] = submitted_.emplace(request_id, run);
  if (!added && known->second != run) {
    journal_.Break("request {} was answered with run {} and then with run {}", request_id, known->second, run);
  }
}

void Promises::Kept(Ask ask, int64_t run, core::Holder by, const std::string& request_id,
                    std::optional<int64_t> order) {
  if (!kept_.insert(request_id).second) return;
  const int64_t at = order.value_or(first_sent_.at(request_id));
  PerRun& promised = runs_[run];
  if (ask == Ask::kStop) promised.stopped = std::max(promised.stopped.value_or(at), at);
  if (ask == Ask::kPause) promised.paused[by] = std::max(promised.paused[by], at);
}

bool Promises::Stopped(int64_t run) const {
  const auto found = runs_.find(run);
  return found != runs_.end() && found->second.stopped && *found->second.stopped > found->second.last_retry;
}

void Promises::Check(const core::RunWithSteps& run) const {
  const auto found = runs_.find(run.run.n);
  if (found == runs_.end()) return;
  for (const core::Step& step : run.steps) CheckStep(found->second, step);
}

void Promises::CheckStep(const PerRun& promised, const core::Step& step) const {
  if (core::IsTerminal(step.state)) return;
  if (promised.stopped && *promised.stopped > promised.last_retry && !(step.attempt && step.stop_requested)) {
    journal_.Break("run {} step {} is {} although its stop was acknowledged", step.ref.run, step.ref.step,
                   core::Name(step.state));
  }
  for (const auto& [holder, at] : promised.paused) {
    if (at <= promised.last_retry || at <= promised.last_resume || step.stop_requested) continue;
    const bool held = holder == core::Holder::kAdmin ? step.pause.admin : step.pause.owner;
    if (!held) {
      journal_.Break("run {} step {} is {} and not held although its pause was acknowledged", step.ref.run,
                     step.ref.step, core::Name(step.state));
    }
  }
}

}  // namespace tp::sim
