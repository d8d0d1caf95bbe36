#include "history.h"

#include <gtest/gtest.h>

#include "author.h"

namespace tp::store {
namespace {

using core::JobState;

HostStamp Stamp(int64_t us) { return {"node-1", "boot-1", us, 1'767'225'600'000'000 + us}; }

core::Attempt LiveAttempt(int format) {
  core::Attempt attempt;
  attempt.number = 2;
  attempt.key = "tp-lab-e1-2-s0-a2";
  attempt.nonce = "0123456789abcdef";
  attempt.created_at = At(20);
  core::PoolShape shape;
  shape.roles = {"worker", "learner"};
  shape.series = "h200";
  shape.profile = "h200-big";
  shape.nodes = 1;
  shape.gpus_per_node = 2;
  shape.env = {{"NCCL_DEBUG", "WARN"}};
  if (format >= 8) {
    shape.demand = {
        .limits = {.cpus = 24, .memory_bytes = int64_t{1} << 30, .shm_bytes = {}, .memlock_bytes = kUnlimited},
        .virtual_cards = true,
        .constraint = "h200",
        .node_selector = {{"pool", "h200"}}};
  }
  attempt.shape.pools = {shape};
  attempt.shape.executor = "gpu_distributed";
  attempt.shape.executor_config = format >= 8 ? R"({"queue":"long"})" : "{}";
  attempt.shape.backend = "local";
  attempt.placement.emplace_back();
  attempt.placement[0].series = "h200";
  attempt.placement[0].gpus_per_node = 2;
  attempt.placement[0].master_port = 29500;
  attempt.placement[0].ranks = {{"node-1", "127.0.0.1", {0, 1}}};
  attempt.handover = core::Handover::kAccepted;
  attempt.claim = Claim::kThisLaunch;
  attempt.ranks.emplace_back();
  attempt.ranks[0].tree = Tree::kAlive;
  attempt.ranks[0].started = StartRecord{"0123456789abcdef", Stamp(21'000'000), 0};
  attempt.ranks[0].heartbeat = Heartbeat{3, Stamp(25'000'000)};
  attempt.granted_at = At(20);
  attempt.meter = core::Meter{Stamp(21'000'000), At(22), std::nullopt, false, ""};
  attempt.ending =
      core::Ending{core::EndCause::kStop, std::nullopt, core::SignalSent::kTerm, core::FenceState::kNotAsked, At(60)};
  attempt.sight.last_seen = At(30);
  return attempt;
}

core::Step LiveStep(int format) {
  core::Step step = Author::QueuedStep({2, 0}, At(2));
  step.spec.name = "train";
  step.spec.argv = {"sh", "-c", "echo \xff"};
  step.spec.explicit_env = {{"SEED", "1"}};
  step.spec.time_limit = absl::Hours(2);
  step.state = JobState::kRunning;
  step.entered_at = At(21);
  step.stop_requested = true;
  step.attempts = 2;
  step.retry_count = 1;
  step.user_retries_used = 1;
  step.ran = absl::Seconds(9);
  step.ever_ran = true;
  step.attempt = LiveAttempt(format);
  core::PastAttempt past;
  past.number = 1;
  past.created_at = At(2);
  past.ended_at = At(12);
  past.outcome = JobState::kQueued;
  past.failure = core::Failure{core::FailureKind::kUserExit, "rank 0 ended with exit 1"};
  past.exit = "exit 1";
  past.nodes = {"node-1"};
  past.cards = 2;
  past.metered_ms = 9000;
  step.past = {past};
  return step;
}

void Commit(Store& store, const Txn& txn) {
  const absl::Status status = store.Commit(txn);
  ASSERT_TRUE(status.ok()) << status;
}

void WriteQuotas(Store& store, Author& author) {
  core::QuotaRule own;
  own.id = 1;
  own.user = "ana";
  own.limits.gpus = 16;
  own.limits.series_gpus = {{"h200", 8}};
  own.limits.storage_bytes = core::kNoLimit;
  own.set_at = At(40);
  own.set_by = "root";
  core::QuotaRule dated = own;
  dated.id = 2;
  dated.user = "ben";
  dated.from = At(50);
  dated.until = At(60);
  dated.limits = {};
  dated.limits.jobs = 0;
  dated.limits.gpu_hours = 100;
  author.Limit(own);
  author.Limit(dated);
  author.Measure({"ana", {4096, At(42)}});
  author.Measure({"", {0, At(43)}});
  author.HoldOpen({"h200", At(70), "root"});
  Commit(store, author.Take());
}

// A flagged end that was corrected, and one that still waits for its record.
void WriteCorrections(Store& store, Author& author, int format) {
  core::LedgerRow row;
  row.run = 1;
  row.attempt = 2;
  row.series = "h200";
  row.owner = "ana";
  row.month = "2026-01";
  row.cards = 2;
  row.start_unix_ms = absl::ToUnixMillis(At(80));
  row.end_unix_ms = absl::ToUnixMillis(At(90));
  row.flagged = true;
  row.evidence = "no end record of pool 0 rank 0; closed at last sighting";
  author.Bill(row);
  row.delta = true;
  row.flagged = false;
  row.start_unix_ms = row.end_unix_ms;
  row.end_unix_ms = absl::ToUnixMillis(At(88));
  row.evidence = "end record of pool 0 rank 0";
  author.Bill(row);
  const core::Attempt attempt = LiveAttempt(format);
  core::Correction owed;
  owed.attempt = {{2, 0}, 1};
  owed.owner = "ben";
  owed.project = "ben-project";
  owed.backend = "local";
  owed.target = {"tp-lab-e1-2-s0-a1", "nonce", "/runs/2", {1}};
  if (format >= 8) owed.target.hosts = {{"node-1", "127.0.0.1", false}};
  owed.placement = attempt.placement;
  owed.ranks = attempt.ranks;
  owed.meter = *attempt.meter;
  owed.meter.closed_unix_us = owed.meter.opened.unix_us + 9'000'000;
  owed.meter.flagged = true;
  owed.created_at = At(91);
  author.Await(owed);
  Commit(store, author.Take());
}

void WriteNodes(Store& store, Author& author) {
  author.Mark({{.node = "node-1"}, core::MarkKind::kDead, "power supply", "root", At(95)});
  author.Mark({{.node = "node-2", .card = 3}, core::MarkKind::kDrained, "Xid 79", "tpd", At(96)});
  author.Strike({"node-1", {{1, 0}, 1}, "ana", core::FailureKind::kNodeLost, At(11)});
  Commit(store, author.Take());
}

}  // namespace

void WriteHistory(Store& store, int format) {
  Author author;
  core::Run first = author.NewRun("ana", 2, At(1));
  first.labels = {{"team", "vision"}};
  if (format >= 7) first.notify = {{"chat", {core::NoticeEvent::kFailed}}};
  author.Put(first);
  author.Keep({"5d41402a", "ana", 1234, 5, At(1)});
  author.Grant({"t1", "2cf24dba", "ana", Role::kAdmin, At(0)});
  author.Answer({"ana", "request-1", "SubmitRun", "9f86d081", 1, "submitted train-1"});
  author.Note({At(1), "ana", "SubmitRun", 1, "train-1"});
  Commit(store, author.Take());

  core::Step failed = Author::QueuedStep({1, 0}, At(1));
  failed.failure = core::Failure{core::FailureKind::kNodeLost, "node-1 is gone"};
  failed.exit = "lost";
  author.Enter(failed, JobState::kFailed, At(11));
  core::Step stopped = Author::QueuedStep({1, 1}, At(1));
  stopped.failure = core::Failure{core::FailureKind::kDependency, "step 0 failed"};
  author.Enter(stopped, JobState::kStopped, At(11));
  author.Bill(1, "ana", At(1), At(11), 8);
  Commit(store, author.Take());

  author.NewRun("ben", 1, At(2));
  author.Put(LiveStep(format));
  author.AddEvent({2, 0}, JobState::kPending, JobState::kRunning, At(21));
  author.Owe({{2, 0}, 2}, OutboxKind::kSignal);
  core::LedgerRow flagged = author.Bill(2, "ben", At(3), At(12), 2);
  flagged.delta = true;
  flagged.start_unix_ms = flagged.end_unix_ms;
  flagged.end_unix_ms -= 500;
  author.Bill(flagged);
  Commit(store, author.Take());
  if (format >= 3) WriteQuotas(store, author);
  if (format >= 6) WriteCorrections(store, author, format);
  if (format >= 8) WriteNodes(store, author);
}

Everything ReadEverything(Reader& reader) {
  return {*reader.ReadMeta(),         reader.ListRuns({}, std::nullopt, 100)->runs, *reader.EventsAfter(0, 100),
          *reader.Ledger({}, 0, 100), *reader.FindRequest("ana", "request-1"),      *reader.SnapshotsOf("ana", At(0)),
          *reader.FindToken("t1")};
}

}  // namespace tp::store
