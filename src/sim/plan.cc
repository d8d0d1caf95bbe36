#include "sim/plan.h"

#include <array>
#include <csignal>
#include <utility>

#include "sim/units.h"

namespace tp::sim {
namespace {

// A rank whose peer has failed waits for it until it is stopped.
constexpr int64_t kHangs = 3 * kHour;

constexpr int64_t kLatest = 3 * kHour;

Story DrawStory(const JobFaults& faults, Rng& rng) {
  const std::array<std::pair<int, Story>, 15> stories = {{
      {faults.fails, Story::kFails},
      {faults.killed, Story::kKilled},
      {faults.out_of_memory, Story::kOutOfMemory},
      {faults.cannot_start, Story::kCannotStart},
      {faults.term_from_outside, Story::kTermFromOutside},
      {faults.runner_killed, Story::kRunnerKilled},
      {faults.preempted, Story::kPreempted},
      {faults.node_lost, Story::kNodeLost},
      {faults.deleted_outside, Story::kDeletedOutside},
      {faults.records_lost, Story::kRecordsLost},
      {faults.no_records, Story::kNoRecords},
      {faults.evicted_waiting, Story::kEvictedWaiting},
      {faults.image, Story::kImage},
      {faults.never_up, Story::kNeverUp},
      {faults.claim_error, Story::kClaimError},
  }};
  for (const auto& [permille, story] : stories) {
    if (permille > 0 && rng.Chance(permille)) return story;
  }
  return Story::kClean;
}

bool PeersHang(Story story) {
  switch (story) {
    case Story::kFails:
    case Story::kKilled:
    case Story::kOutOfMemory:
    case Story::kCannotStart:
    case Story::kRunnerKilled:
    case Story::kNodeLost:
    case Story::kNeverUp:
    case Story::kClaimError:
      return true;
    case Story::kClean:
    case Story::kTermFromOutside:
    case Story::kPreempted:
    case Story::kDeletedOutside:
    case Story::kRecordsLost:
    case Story::kNoRecords:
    case Story::kEvictedWaiting:
    case Story::kImage:
      return false;
  }
  return false;
}

// Short enough to be over before two answers can be a grace apart, or so long that only the heartbeats
// contradict the engine.
void DrawDenial(const Options& options, Plan& plan, Rng& rng) {
  if (!rng.Chance(options.engine.false_absent)) return;
  plan.denied_from_us = rng.Draw({kMillisecond, 2 * kMinute});
  const int64_t grace_us = absl::ToInt64Microseconds(options.policy.absent_grace);
  const bool long_one = rng.Chance(options.engine.long_false_absent);
  plan.denied_until_us =
      plan.denied_from_us + (long_one ? rng.Between(grace_us, kMinute) : rng.Between(kMillisecond, grace_us - kSecond));
}

}  // namespace

Plan DrawPlan(const Options& options, size_t ranks, Rng& rng) {
  const Pace& pace = options.pace;
  const JobFaults& faults = options.jobs;
  Plan plan;
  plan.story = DrawStory(faults, rng);
  plan.subject = static_cast<size_t>(rng.Between(0, static_cast<int64_t>(ranks) - 1));
  plan.pending_us = rng.Draw(rng.Chance(faults.pending_long) ? pace.pending_long : pace.pending);
  plan.linger_us = rng.Draw(pace.verify);
  plan.ignores_term = rng.Chance(faults.ignores_term);
  plan.exits_on_warning = rng.Chance(faults.exits_on_warning);
  plan.term_cancels_starts = rng.Chance(500);
  plan.engine_tells = rng.Chance(500);
  plan.exit_code = static_cast<int>(rng.Between(1, 255));
  plan.term_code = rng.Chance(faults.exits_zero_on_term) ? 0 : rng.Chance(500) ? -SIGTERM : 143;
  plan.signal = rng.Chance(500) ? SIGSEGV : SIGKILL;
  DrawDenial(options, plan, rng);
  const int64_t run_us = rng.Draw(pace.run);
  for (size_t rank = 0; rank < ranks; ++rank) {
    RankPlan one;
    one.start_us = rng.Draw(pace.call);
    one.claim_us = rng.Draw(pace.claim_to_start);
    one.run_us = run_us + rng.Draw({0, 100 * kMillisecond});
    one.term_response_us = rng.Draw(pace.term_response);
    one.visibility_us = rng.Draw(pace.visibility);
    one.verify_us = rng.Draw(pace.verify);
    if (rank != plan.subject && PeersHang(plan.story)) one.run_us = kHangs;
    plan.ranks.push_back(one);
  }
  if (faults.late_records > 0 && rng.Chance(faults.late_records)) plan.late_records_us = rng.Draw({0, kLatest});
  return plan;
}

}  // namespace tp::sim
