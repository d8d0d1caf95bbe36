// Runs in the states that tests need.
#pragma once

#include <string>
#include <utility>

#include "core/run.h"

namespace tp::api {

inline core::RunWithSteps QueuedRun(int64_t n, const std::string& owner, const std::string& slug = "train") {
  core::RunWithSteps run;
  run.run.n = n;
  run.run.slug = slug;
  run.run.owner = owner;
  run.run.project = "default";
  run.run.created_at = absl::FromUnixSeconds(1'700'000'000);
  core::Step step;
  step.ref = {n, 0};
  step.spec.name = "main";
  step.spec.argv = {"python3", "train.py"};
  step.spec.profiles = {"h200:16"};
  step.created_at = run.run.created_at;
  step.entered_at = run.run.created_at;
  run.steps.push_back(std::move(step));
  return run;
}

// Two ranks of eight cards.
inline core::RunWithSteps RunningRun(int64_t n, const std::string& owner) {
  core::RunWithSteps run = QueuedRun(n, owner);
  core::Step& step = run.steps[0];
  step.state = core::JobState::kRunning;
  step.attempts = 1;
  step.ever_ran = true;
  core::Attempt attempt;
  attempt.number = 1;
  attempt.key = "tp-test-e1-" + std::to_string(n) + "-s0-a1";
  attempt.nonce = "0123456789abcdef0123456789abcdef";
  attempt.created_at = run.run.created_at;
  attempt.shape.backend = "local";
  attempt.shape.executor = "gpu/default";
  core::PoolShape pool;
  pool.series = pool.profile = "h200";
  pool.nodes = 2;
  pool.gpus_per_node = 8;
  attempt.shape.pools.push_back(pool);
  PoolPlacement placement;
  placement.series = placement.profile = "h200";
  placement.gpus_per_node = 8;
  placement.ranks = {{"node-1", "127.0.0.1", {0, 1, 2, 3, 4, 5, 6, 7}},
                     {"node-2", "127.0.0.1", {0, 1, 2, 3, 4, 5, 6, 7}}};
  attempt.placement.push_back(placement);
  attempt.handover = core::Handover::kAccepted;
  step.attempt = std::move(attempt);
  return run;
}

inline core::RunWithSteps EndedRun(core::RunWithSteps run, core::JobState outcome) {
  core::Step& step = run.steps[0];
  step.state = outcome;
  step.entered_at = run.run.created_at + absl::Seconds(100);
  if (step.attempt) {
    core::PastAttempt past;
    past.number = step.attempt->number;
    past.created_at = step.attempt->created_at;
    past.ended_at = step.entered_at;
    past.outcome = outcome;
    past.exit = outcome == core::JobState::kSucceeded ? "exit 0" : "rank 0-0: exit 1";
    past.nodes = {"node-1", "node-2"};
    past.cards = 16;
    past.metered_ms = 1000;
    step.past.push_back(std::move(past));
    step.exit = step.past.back().exit;
    step.attempt.reset();
  }
  if (outcome == core::JobState::kFailed) {
    step.failure = core::Failure{core::FailureKind::kUserExit, "rank 0-0 exited with code 1: see tp logs"};
    if (!step.past.empty()) step.past.back().failure = step.failure;
  }
  return run;
}

}  // namespace tp::api
