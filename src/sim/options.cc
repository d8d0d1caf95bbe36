#include "sim/options.h"

#include "sim/units.h"

namespace tp::sim {
namespace {

// Most faults are absent from most seeds; where one exists its rate is drawn.
int Sometimes(Rng& rng, int most) { return rng.Chance(400) ? static_cast<int>(rng.Between(1, most)) : 0; }

Span SometimesEvery(Rng& rng, Span span) { return rng.Chance(400) ? span : Span{}; }

EngineFaults DrawEngine(Rng& rng) {
  EngineFaults faults;
  faults.unique_names = rng.Chance(500);
  faults.refused = Sometimes(rng, 300);
  faults.rejected = Sometimes(rng, 150);
  faults.storage_full = Sometimes(rng, 300);
  faults.indeterminate = Sometimes(rng, 400);
  faults.late_object = Sometimes(rng, 200);
  faults.doubled = faults.unique_names ? 0 : Sometimes(rng, 300);
  faults.call_fails = Sometimes(rng, 300);
  faults.doubled_answer = Sometimes(rng, 200);
  faults.false_absent = Sometimes(rng, 400);
  faults.long_false_absent = Sometimes(rng, 500);
  faults.late_observation = Sometimes(rng, 200);
  faults.between_outages = SometimesEvery(rng, {kSecond, 2 * kMinute});
  faults.outage = {kSecond, 2 * kMinute};
  faults.between_storage_outages = SometimesEvery(rng, {kSecond, 2 * kMinute});
  faults.storage_outage = {kSecond, kMinute};
  return faults;
}

JobFaults DrawJobs(Rng& rng) {
  JobFaults faults;
  faults.fails = Sometimes(rng, 300);
  faults.killed = Sometimes(rng, 150);
  faults.out_of_memory = Sometimes(rng, 150);
  faults.cannot_start = Sometimes(rng, 100);
  faults.term_from_outside = Sometimes(rng, 200);
  faults.runner_killed = Sometimes(rng, 200);
  faults.preempted = Sometimes(rng, 200);
  faults.node_lost = Sometimes(rng, 200);
  faults.deleted_outside = Sometimes(rng, 150);
  faults.records_lost = Sometimes(rng, 150);
  faults.no_records = Sometimes(rng, 60);
  faults.evicted_waiting = Sometimes(rng, 150);
  faults.image = Sometimes(rng, 100);
  faults.never_up = Sometimes(rng, 150);
  faults.claim_error = Sometimes(rng, 150);
  faults.ignores_term = Sometimes(rng, 600);
  faults.exits_on_warning = Sometimes(rng, 600);
  faults.exits_zero_on_term = Sometimes(rng, 600);
  faults.pending_long = Sometimes(rng, 300);
  return faults;
}

Pace DrawPace(Rng& rng) {
  Pace pace;
  pace.call = {kMillisecond, rng.Draw({20 * kMillisecond, 5 * kSecond})};
  pace.observe_every = {kSecond, rng.Draw({2 * kSecond, 15 * kSecond})};
  pace.wake = {kMillisecond, kSecond};
  pace.woken = rng.Chance(600) ? static_cast<int>(rng.Between(100, 1000)) : 0;
  pace.visibility = {0, rng.Chance(500) ? rng.Draw({kMillisecond, 20 * kSecond}) : 0};
  // Now and then slower than any grace.
  pace.verify = {0, rng.Draw({kMillisecond, rng.Chance(200) ? 3 * kMinute : 5 * kSecond})};
  pace.claim_to_start = {kMillisecond, rng.Draw({10 * kMillisecond, 10 * kSecond})};
  pace.run = {kMillisecond, rng.Draw({kSecond, 10 * kMinute})};
  pace.pending = {0, rng.Draw({kMillisecond, 30 * kSecond})};
  pace.pending_long = {kMinute, 20 * kMinute};
  pace.term_response = {kMillisecond, rng.Draw({10 * kMillisecond, 40 * kSecond})};
  return pace;
}

ServerFaults DrawServer(Rng& rng) {
  ServerFaults faults;
  faults.crash_at_commit = Sometimes(rng, 80);
  faults.between_crashes = SometimesEvery(rng, {5 * kSecond, 5 * kMinute});
  faults.downtime = {100 * kMillisecond, rng.Draw({kSecond, 10 * kMinute})};
  faults.commit = {500, rng.Draw({kMillisecond, 300 * kMillisecond})};
  faults.between_clock_sets = SometimesEvery(rng, {10 * kSecond, 10 * kMinute});
  faults.clock_set = {kSecond, rng.Draw({kMinute, 24 * kHour})};
  return faults;
}

UserPlan DrawUsers(Rng& rng) {
  UserPlan plan;
  plan.between_actions = {10 * kMillisecond, rng.Draw({2 * kSecond, kMinute})};
  plan.reply_lost = Sometimes(rng, 300);
  plan.impatient = Sometimes(rng, 300);
  plan.invalid = Sometimes(rng, 100);
  plan.submit_weight = static_cast<int>(rng.Between(1, 6));
  plan.pipelines = static_cast<int>(rng.Between(0, 3));
  plan.arrays = Sometimes(rng, 150);
  plan.bulk = Sometimes(rng, 500);
  plan.after = Sometimes(rng, 250);
  plan.time_limited = Sometimes(rng, 600);
  plan.pending_limited = Sometimes(rng, 600);
  plan.snapshot_gone = Sometimes(rng, 300);
  plan.between_reloads = SometimesEvery(rng, {10 * kSecond, 5 * kMinute});
  return plan;
}

// Open for some of every few minutes, so that a history of minutes sees it open and close.
std::vector<core::OpenInterval> DrawHours(Rng& rng) {
  std::vector<core::OpenInterval> hours;
  const auto period = static_cast<int>(rng.Between(2, 60));
  const auto open = static_cast<int>(rng.Between(1, period));
  for (int day = 0; day < 7; ++day) {
    for (int minute = 0; minute + open <= 24 * 60; minute += period) hours.push_back({day, minute, minute + open});
  }
  return hours;
}

AdminPlan DrawAdmin(Rng& rng) {
  AdminPlan plan;
  plan.between_edits = SometimesEvery(rng, {kSecond, 2 * kMinute});
  if (rng.Chance(400)) plan.hours = DrawHours(rng);
  plan.grace = absl::Seconds(rng.Between(0, 60));
  plan.min_remaining = absl::Seconds(rng.Between(0, 120));
  return plan;
}

CardFaults DrawCards(Rng& rng) {
  CardFaults faults;
  faults.between_breaks = SometimesEvery(rng, {kSecond, kMinute});
  faults.fails = static_cast<int>(rng.Between(300, 1000));
  faults.look_fails = Sometimes(rng, 300);
  return faults;
}

core::Policy DrawPolicy(Rng& rng) {
  core::Policy policy;
  policy.stop_grace = absl::Seconds(rng.Between(1, 30));
  policy.pause_grace = absl::Seconds(rng.Between(1, 60));
  policy.kill_repeat = absl::Seconds(rng.Between(2, 10));
  policy.fence_repeat = absl::Seconds(rng.Between(1, 8));
  policy.absent_grace = absl::Seconds(rng.Between(3, 10));
  policy.start_timeout = absl::Seconds(rng.Between(20, 600));
  policy.user_retries = static_cast<int32_t>(rng.Between(0, 2));
  policy.infrastructure_retries = static_cast<int32_t>(rng.Between(0, 3));
  policy.retry_cooldown = absl::Seconds(rng.Between(0, 60));
  policy.relaunch_backoff_max = absl::Seconds(rng.Between(1, 600));
  policy.aging = absl::Seconds(rng.Between(0, 600));
  policy.default_time_limit = absl::Seconds(rng.Between(60, 3600));
  policy.min_flip = absl::Seconds(rng.Between(0, 60));
  return policy;
}

}  // namespace

Options Options::Draw(uint64_t seed, Rng& rng) {
  Options options;
  options.seed = seed;
  // Within two hours before the end of a month, of any year that the ledger will see.
  constexpr int64_t kEndOfFebruary2028 = 1'835'481'600;
  options.start_unix_us = kEndOfFebruary2028 * kSecond - rng.Between(1, 2 * kHour);
  options.nodes = static_cast<int>(rng.Between(2, 4));
  options.cards_per_node = static_cast<int>(rng.Between(1, 8));
  options.host_skew = {0, rng.Chance(250) ? 3 * kSecond : 0};
  options.engine = DrawEngine(rng);
  options.jobs = DrawJobs(rng);
  options.pace = DrawPace(rng);
  options.server = DrawServer(rng);
  options.users = DrawUsers(rng);
  options.policy = DrawPolicy(rng);
  options.admin = DrawAdmin(rng);
  options.jobs.late_records = Sometimes(rng, 1000);
  options.cards = DrawCards(rng);
  options.policy.idle_after = absl::Seconds(rng.Between(0, 60));
  return options;
}

void Calm(Options& options) {
  const bool unique_names = options.engine.unique_names;
  options.engine = {};
  options.engine.unique_names = unique_names;
  options.jobs = {};
  options.cards = {};
  // Else a pending_timeout could withdraw every launch, for ever.
  options.pace.call = {kMillisecond, 100 * kMillisecond};
  options.pace.pending = {0, 100 * kMillisecond};
  options.server.crash_at_commit = 0;
  options.server.between_crashes = {};
  options.server.between_clock_sets = {};
  options.users.between_reloads = {};
  options.admin = {};
}

}  // namespace tp::sim
