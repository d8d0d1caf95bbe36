// The members of every stored value, listed once: the JSON codec, the rounding of times and the tests'
// value generator all walk these lists. A visitor is called as visitor(name, member).
//
// The structured bindings are there on purpose: a struct that gains a member fails to compile here until
// the member is listed, and so can't be silently lost on its way through the store.
// Stored JSON that lacks a member is refused: one that is added after a release comes with a migration
// that sets it, e.g. `UPDATE attempt SET sight = json_set(sight, '$.value.last_alive', NULL)`.
#pragma once

#include <concepts>
#include <type_traits>

#include "core/correction.h"
#include "core/quota.h"
#include "core/run.h"
#include "core/step.h"
#include "tp/attempt.h"
#include "tp/launch.h"
#include "tp/observation.h"
#include "tp/records.h"

namespace tp::store {

template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <typename Visitor, Is<core::After> T>
void Fields(Visitor& visitor, T& value) {
  auto& [step, when] = value;
  visitor("step", step);
  visitor("when", when);
}

template <typename Visitor, Is<core::StepSpec> T>
void Fields(Visitor& visitor, T& value) {
  auto& [name, argv, profiles, env, explicit_env, image, after, time_limit, pending_timeout, start_timeout,
         user_retries, infrastructure_retries, array_index] = value;
  visitor("name", name);
  visitor("argv", argv);
  visitor("profiles", profiles);
  visitor("env", env);
  visitor("explicit_env", explicit_env);
  visitor("image", image);
  visitor("after", after);
  visitor("time_limit", time_limit);
  visitor("pending_timeout", pending_timeout);
  visitor("start_timeout", start_timeout);
  visitor("user_retries", user_retries);
  visitor("infrastructure_retries", infrastructure_retries);
  visitor("array_index", array_index);
}

template <typename Visitor, Is<RankLimits> T>
void Fields(Visitor& visitor, T& value) {
  auto& [cpus, memory_bytes, shm_bytes, memlock_bytes] = value;
  visitor("cpus", cpus);
  visitor("memory_bytes", memory_bytes);
  visitor("shm_bytes", shm_bytes);
  visitor("memlock_bytes", memlock_bytes);
}

template <typename Visitor, Is<NodeDemand> T>
void Fields(Visitor& visitor, T& value) {
  auto& [limits, virtual_cards, constraint, node_selector] = value;
  visitor("limits", limits);
  visitor("virtual_cards", virtual_cards);
  visitor("constraint", constraint);
  visitor("node_selector", node_selector);
}

template <typename Visitor, Is<core::PoolShape> T>
void Fields(Visitor& visitor, T& value) {
  auto& [roles, series, profile, nodes, gpus_per_node, env, locked_env, overrides_json, overrides_env, demand] = value;
  visitor("roles", roles);
  visitor("series", series);
  visitor("profile", profile);
  visitor("nodes", nodes);
  visitor("gpus_per_node", gpus_per_node);
  visitor("env", env);
  visitor("locked_env", locked_env);
  visitor("overrides_json", overrides_json);
  visitor("overrides_env", overrides_env);
  visitor("demand", demand);
}

template <typename Visitor, Is<core::ResolvedShape> T>
void Fields(Visitor& visitor, T& value) {
  auto& [pools, executor, executor_config, backend, notes] = value;
  visitor("pools", pools);
  visitor("executor", executor);
  visitor("executor_config", executor_config);
  visitor("backend", backend);
  visitor("notes", notes);
}

template <typename Visitor, Is<RankHost> T>
void Fields(Visitor& visitor, T& value) {
  auto& [node, address, declared_dead] = value;
  visitor("node", node);
  visitor("address", address);
  visitor("declared_dead", declared_dead);
}

template <typename Visitor, Is<AttemptTarget> T>
void Fields(Visitor& visitor, T& value) {
  auto& [key, nonce, attempt_dir, ranks_per_pool, hosts] = value;
  visitor("key", key);
  visitor("nonce", nonce);
  visitor("attempt_dir", attempt_dir);
  visitor("ranks_per_pool", ranks_per_pool);
  visitor("hosts", hosts);
}

template <typename Visitor, Is<RankPlacement> T>
void Fields(Visitor& visitor, T& value) {
  auto& [node, address, cards] = value;
  visitor("node", node);
  visitor("address", address);
  visitor("cards", cards);
}

template <typename Visitor, Is<PoolPlacement> T>
void Fields(Visitor& visitor, T& value) {
  auto& [series, profile, roles, gpus_per_node, master_port, ranks] = value;
  visitor("series", series);
  visitor("profile", profile);
  visitor("roles", roles);
  visitor("gpus_per_node", gpus_per_node);
  visitor("master_port", master_port);
  visitor("ranks", ranks);
}

template <typename Visitor, Is<HostStamp> T>
void Fields(Visitor& visitor, T& value) {
  auto& [host, boot_id, boot_us, unix_us] = value;
  visitor("host", host);
  visitor("boot_id", boot_id);
  visitor("boot_us", boot_us);
  visitor("unix_us", unix_us);
}

template <typename Visitor, Is<StartRecord> T>
void Fields(Visitor& visitor, T& value) {
  auto& [nonce, at, precision_us] = value;
  visitor("nonce", nonce);
  visitor("at", at);
  visitor("precision_us", precision_us);
}

template <typename Visitor, Is<EndRecord> T>
void Fields(Visitor& visitor, T& value) {
  auto& [nonce, at, exit, code, term_signal, start_error, signalled_by, ambiguous, oom_kills, log_bytes, log_mark] =
      value;
  visitor("nonce", nonce);
  visitor("at", at);
  visitor("exit", exit);
  visitor("code", code);
  visitor("term_signal", term_signal);
  visitor("start_error", start_error);
  visitor("signalled_by", signalled_by);
  visitor("ambiguous", ambiguous);
  visitor("oom_kills", oom_kills);
  visitor("log_bytes", log_bytes);
  static_cast<void>(log_mark);  // read again with the record, and needed when that is first read only
}

template <typename Visitor, Is<Heartbeat> T>
void Fields(Visitor& visitor, T& value) {
  auto& [count, at] = value;
  visitor("count", count);
  visitor("at", at);
}

template <typename Visitor, Is<RankObservation> T>
void Fields(Visitor& visitor, T& value) {
  auto& [pool, rank, tree, started, ended, heartbeat] = value;
  visitor("pool", pool);
  visitor("rank", rank);
  visitor("tree", tree);
  visitor("started", started);
  visitor("ended", ended);
  visitor("heartbeat", heartbeat);
}

template <typename Visitor, Is<core::Failure> T>
void Fields(Visitor& visitor, T& value) {
  auto& [kind, sentence] = value;
  visitor("kind", kind);
  visitor("sentence", sentence);
}

template <typename Visitor, Is<core::Ending> T>
void Fields(Visitor& visitor, T& value) {
  auto& [cause, failure, sent, fence, escalate_at] = value;
  visitor("cause", cause);
  visitor("failure", failure);
  visitor("sent", sent);
  visitor("fence", fence);
  visitor("escalate_at", escalate_at);
}

template <typename Visitor, Is<core::Meter> T>
void Fields(Visitor& visitor, T& value) {
  auto& [opened, seen_at, closed_unix_us, flagged, evidence] = value;
  visitor("opened", opened);
  visitor("seen_at", seen_at);
  visitor("closed_unix_us", closed_unix_us);
  visitor("flagged", flagged);
  visitor("evidence", evidence);
}

template <typename Visitor, Is<core::CardFault> T>
void Fields(Visitor& visitor, T& value) {
  auto& [node, card, why] = value;
  visitor("node", node);
  visitor("card", card);
  visitor("why", why);
}

template <typename Visitor, Is<core::Sight> T>
void Fields(Visitor& visitor, T& value) {
  auto& [last_seen, last_alive, unknown_since, unknown_why, engine_reason, absent_count, absent_since, pending,
         starting, card_faults, look_asked] = value;
  visitor("last_seen", last_seen);
  visitor("last_alive", last_alive);
  visitor("unknown_since", unknown_since);
  visitor("unknown_why", unknown_why);
  visitor("engine_reason", engine_reason);
  visitor("absent_count", absent_count);
  visitor("absent_since", absent_since);
  visitor("pending", pending);
  visitor("starting", starting);
  visitor("card_faults", card_faults);
  visitor("look_asked", look_asked);
}

template <typename Visitor, Is<core::Attempt> T>
void Fields(Visitor& visitor, T& value) {
  auto& [number, key, nonce, created_at, shape, placement, handover, claim, ranks, granted_at, meter, ending,
         engine_end, freed, sight] = value;
  visitor("number", number);
  visitor("key", key);
  visitor("nonce", nonce);
  visitor("created_at", created_at);
  visitor("shape", shape);
  visitor("placement", placement);
  visitor("handover", handover);
  visitor("claim", claim);
  visitor("ranks", ranks);
  visitor("granted_at", granted_at);
  visitor("meter", meter);
  visitor("ending", ending);
  visitor("engine_end", engine_end);
  visitor("freed", freed);
  visitor("sight", sight);
}

template <typename Visitor, Is<core::PauseHolders> T>
void Fields(Visitor& visitor, T& value) {
  auto& [owner, admin, window] = value;
  visitor("owner", owner);
  visitor("admin", admin);
  visitor("window", window);
}

template <typename Visitor, Is<core::Hold> T>
void Fields(Visitor& visitor, T& value) {
  auto& [owner, admin, shape] = value;
  visitor("owner", owner);
  visitor("admin", admin);
  visitor("shape", shape);
}

template <typename Visitor, Is<core::PastAttempt> T>
void Fields(Visitor& visitor, T& value) {
  auto& [number, created_at, ended_at, outcome, failure, exit, backend, nodes, cards, metered_ms] = value;
  visitor("number", number);
  visitor("created_at", created_at);
  visitor("ended_at", ended_at);
  visitor("outcome", outcome);
  visitor("failure", failure);
  visitor("exit", exit);
  visitor("backend", backend);
  visitor("nodes", nodes);
  visitor("cards", cards);
  visitor("metered_ms", metered_ms);
}

template <typename Visitor, Is<core::StepRef> T>
void Fields(Visitor& visitor, T& value) {
  auto& [run, step] = value;
  visitor("run", run);
  visitor("step", step);
}

template <typename Visitor, Is<core::Step> T>
void Fields(Visitor& visitor, T& value) {
  auto& [ref, spec, state, created_at, entered_at, stop_requested, pause, hold, attempts, retry_count,
         user_retries_used, infrastructure_retries_used, relaunches, cooldown_until, backoff_until, backoff_reason,
         avoid_node, ran, ever_ran, attempt, failure, exit, past] = value;
  visitor("ref", ref);
  visitor("spec", spec);
  visitor("state", state);
  visitor("created_at", created_at);
  visitor("entered_at", entered_at);
  visitor("stop_requested", stop_requested);
  visitor("pause", pause);
  visitor("hold", hold);
  visitor("attempts", attempts);
  visitor("retry_count", retry_count);
  visitor("user_retries_used", user_retries_used);
  visitor("infrastructure_retries_used", infrastructure_retries_used);
  visitor("relaunches", relaunches);
  visitor("cooldown_until", cooldown_until);
  visitor("backoff_until", backoff_until);
  visitor("backoff_reason", backoff_reason);
  visitor("avoid_node", avoid_node);
  visitor("ran", ran);
  visitor("ever_ran", ever_ran);
  visitor("attempt", attempt);
  visitor("failure", failure);
  visitor("exit", exit);
  visitor("past", past);
}

template <typename Visitor, Is<core::RunDependency> T>
void Fields(Visitor& visitor, T& value) {
  auto& [run, id, when, outcome] = value;
  visitor("run", run);
  visitor("id", id);
  visitor("when", when);
  visitor("outcome", outcome);
}

template <typename Visitor, Is<core::Notice> T>
void Fields(Visitor& visitor, T& value) {
  auto& [to, on] = value;
  visitor("to", to);
  visitor("on", on);
}

template <typename Visitor, Is<core::Run> T>
void Fields(Visitor& visitor, T& value) {
  auto& [n, slug, owner, project, snapshot_id, labels, priority, created_at, snapshot_available, removed_at, after,
         array_limit, notify] = value;
  visitor("n", n);
  visitor("slug", slug);
  visitor("owner", owner);
  visitor("project", project);
  visitor("snapshot_id", snapshot_id);
  visitor("labels", labels);
  visitor("priority", priority);
  visitor("created_at", created_at);
  visitor("snapshot_available", snapshot_available);
  visitor("removed_at", removed_at);
  visitor("after", after);
  visitor("array_limit", array_limit);
  visitor("notify", notify);
}

template <typename Visitor, Is<core::QuotaLimits> T>
void Fields(Visitor& visitor, T& value) {
  auto& [gpus, series_gpus, jobs, gpu_hours, storage_bytes] = value;
  visitor("gpus", gpus);
  visitor("series_gpus", series_gpus);
  visitor("jobs", jobs);
  visitor("gpu_hours", gpu_hours);
  visitor("storage_bytes", storage_bytes);
}

template <typename Visitor, Is<core::QuotaRule> T>
void Fields(Visitor& visitor, T& value) {
  auto& [id, user, from, until, limits, set_at, set_by] = value;
  visitor("id", id);
  visitor("user", user);
  visitor("from", from);
  visitor("until", until);
  visitor("limits", limits);
  visitor("set_at", set_at);
  visitor("set_by", set_by);
}

template <typename Visitor, Is<core::StorageUse> T>
void Fields(Visitor& visitor, T& value) {
  auto& [bytes, scanned_at] = value;
  visitor("bytes", bytes);
  visitor("scanned_at", scanned_at);
}

template <typename Visitor, Is<core::AttemptRef> T>
void Fields(Visitor& visitor, T& value) {
  auto& [step, attempt] = value;
  visitor("step", step);
  visitor("attempt", attempt);
}

template <typename Visitor, Is<core::Correction> T>
void Fields(Visitor& visitor, T& value) {
  auto& [attempt, owner, project, backend, target, placement, ranks, meter, created_at] = value;
  visitor("attempt", attempt);
  visitor("owner", owner);
  visitor("project", project);
  visitor("backend", backend);
  visitor("target", target);
  visitor("placement", placement);
  visitor("ranks", ranks);
  visitor("meter", meter);
  visitor("created_at", created_at);
}

}  // namespace tp::store
