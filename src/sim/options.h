// What a seed is made of: which faults exist in its world and how often they strike, how large
// everything is, and under which policy the loop decides (swarm testing: each seed has some faults and
// lacks others, so that none hides behind another).
#pragma once

#include <cstdint>
#include <vector>

#include "core/registry.h"
#include "core/step.h"
#include "sim/rng.h"

namespace tp::sim {

// Per mille of the occasions, unless the name says otherwise.
struct EngineFaults {
  bool unique_names = true;  // the engine refuses a second object of one key
  int refused = 0;
  int rejected = 0;
  int storage_full = 0;       // of launches after the first, whose output may be what fills it
  int indeterminate = 0;      // the answer is lost; the call may have taken effect, or does so later
  int late_object = 0;        // accepted, yet the object shows only later
  int doubled = 0;            // one call makes two objects, where names are not unique
  int call_fails = 0;         // fence, signal, remove: an error; half of them took effect all the same
  int doubled_answer = 0;     // an answer is posted twice
  int false_absent = 0;       // of objects: the engine denies them for a while
  int long_false_absent = 0;  // of those: longer than absent_grace, while heartbeats rise
  int late_observation = 0;   // posted after later answers of the same attempt
  Span between_outages;       // zero: none. Calls fail, observations are Unknown
  Span outage;
  Span between_storage_outages;
  Span storage_outage;
};

// Of attempts, per mille; the first that strikes is the attempt's story.
struct JobFaults {
  int fails = 0;
  int killed = 0;
  int out_of_memory = 0;
  int cannot_start = 0;
  int term_from_outside = 0;
  int runner_killed = 0;
  int preempted = 0;
  int node_lost = 0;
  int deleted_outside = 0;
  int records_lost = 0;     // the end records never show, only the engine's exit 0
  int no_records = 0;       // neither do the start records
  int late_records = 0;     // of those that lack end records: they show after tpd has left the attempt
  int evicted_waiting = 0;  // before any rank came up
  int image = 0;
  int never_up = 0;     // one rank never comes up
  int claim_error = 0;  // the storage fails the rank that would claim: exit 75

  int ignores_term = 0;
  int exits_on_warning = 0;
  int exits_zero_on_term = 0;
  int pending_long = 0;
};

struct Pace {
  Span call;
  Span observe_every;
  Span wake;
  int woken = 0;    // per mille of changes
  Span visibility;  // until a record is seen by tpd
  Span verify;      // until a tree is known to be gone
  Span claim_to_start;
  Span run;
  Span pending;
  Span pending_long;
  Span term_response;
};

struct ServerFaults {
  int crash_at_commit = 0;  // per mille of commits, half before, half after
  Span between_crashes;     // zero: none at other moments
  Span downtime;
  Span commit;
  Span between_clock_sets;  // zero: tpd's real-time clock is right
  Span clock_set;           // how far, ahead or back
};

struct UserPlan {
  Span between_actions;
  int reply_lost = 0;
  int impatient = 0;  // sends again before the answer can be there
  int invalid = 0;
  int submit_weight = 0;
  int pipelines = 0;  // runs of several steps that exist from the start
  int arrays = 0;     // of the submissions
  int bulk = 0;       // of the requests: one call with others
  int after = 0;      // of the submissions: that come after other runs
  int time_limited = 0;
  int pending_limited = 0;
  int snapshot_gone = 0;  // of the pipelines
  Span between_reloads;   // zero: the registry stays as it is
};

struct CardFaults {
  Span between_breaks;  // zero: none
  int fails = 0;        // per mille: the jobs on the card end by it
  int look_fails = 0;   // of the looks: nobody answers
};

struct AdminPlan {
  Span between_edits;                     // of quotas and windows; zero: none
  std::vector<core::OpenInterval> hours;  // of the series `gpu`; empty: always open
  absl::Duration grace;
  absl::Duration min_remaining;
};

struct Options {
  uint64_t seed = 0;
  int64_t start_unix_us = 0;
  int nodes = 0;
  int cards_per_node = 0;
  Span host_skew;  // of the hosts' clocks against tpd's
  EngineFaults engine;
  JobFaults jobs;
  Pace pace;
  ServerFaults server;
  UserPlan users;
  AdminPlan admin;
  CardFaults cards;
  core::Policy policy;

  static Options Draw(uint64_t seed, Rng& rng);
};

// What is left in the second phase: a world without faults, and users who only wait.
void Calm(Options& options);

}  // namespace tp::sim
