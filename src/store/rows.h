// What a transaction carries and what start-up loads. Values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/correction.h"
#include "core/ledger.h"
#include "core/node_book.h"
#include "core/quota.h"
#include "core/run.h"
#include "core/step.h"
#include "tp/attempt.h"

namespace tp::store {

// A change of a step, for `tp events`, the job page and watches. `revision` is global and gapless
// within an epoch.
struct EventRow {
  int64_t revision = 0;
  absl::Time at;
  int64_t run = 0;
  int32_t step = 0;
  int32_t attempt = 0;
  std::string event;  // core::Name(EventKind)
  core::JobState from = core::JobState::kQueued;
  core::JobState to = core::JobState::kQueued;
  std::string note;
  bool operator==(const EventRow&) const = default;
};

// The event of a step that runs while its cards have computed nothing for long.
inline constexpr std::string_view kIdleEvent = "idle";

// A run's word became one of those that somebody can be told of (core::NoticeEventOf), at the commit of the event
// `revision`. Derived by the store; kept like events, and complete, since a run goes on while it is being told. From
// RUNNING to RUNNING: the event was kIdleEvent.
struct WordChangeRow {
  int64_t revision = 0;
  absl::Time at;
  int64_t run = 0;
  std::string step;  // the name of the one that the word speaks of
  core::RunWord from = core::RunWord::kQueued;
  core::RunWord to = core::RunWord::kQueued;
  int32_t retry_count = 0;  // of all steps together
  std::string reason;
  bool operator==(const WordChangeRow&) const = default;
};

enum class OutboxKind : uint8_t { kLaunch, kFence, kSignal, kRemove };

// An effect that a commit owes to a backend; deleted by the commit that records its answer.
struct OutboxRow {
  int64_t id = 0;
  core::AttemptRef attempt;
  OutboxKind kind = OutboxKind::kLaunch;
  StopLevel level = StopLevel::kTerm;  // kSignal only
  std::string backend;
  AttemptTarget target;  // complete, so that a removal needs no run in memory
  absl::Time created_at;
  bool operator==(const OutboxRow&) const = default;
};

// The remembered answer to a mutating call. Kept as long as the run it speaks of.
struct RequestRow {
  std::string principal;
  std::string request_id;
  std::string method;
  std::string body_sha256;  // same id, other body: refused
  int64_t run = 0;
  std::string note;  // the sentence that was answered
  bool operator==(const RequestRow&) const = default;
};

// Who committed a snapshot last. Its files are what counts: the row stays when they are collected.
struct SnapshotRow {
  std::string id;  // snapshot::Manifest::id
  std::string owner;
  int64_t bytes = 0;
  int64_t files = 0;
  absl::Time created_at;
  bool operator==(const SnapshotRow&) const = default;
};

enum class Role : uint8_t { kViewer, kUser, kOperator, kAdmin };

struct TokenRow {
  std::string id;
  std::string secret_sha256;  // hex; the secret itself is never stored
  std::string user;
  Role role = Role::kUser;
  absl::Time created_at;
  bool operator==(const TokenRow&) const = default;
};

struct AuditRow {
  absl::Time at;
  std::string principal;
  std::string method;
  int64_t run = 0;  // 0: not about a run
  std::string detail;
  int64_t revision = 0;  // of the newest event when it was done
  bool operator==(const AuditRow&) const = default;
};

// How much storage an owner was found to use.
struct StorageUseRow {
  std::string owner;
  core::StorageUse use;
  bool operator==(const StorageUseRow&) const = default;
};

// An admin keeps the windows of a series open; `until` in the past: lifted.
struct WindowHoldRow {
  std::string series;
  absl::Time until;
  std::string set_by;
  bool operator==(const WindowHoldRow&) const = default;
};

// What an owner's settled attempts come to in one month (core::LedgerRow::month).
struct MonthUseRow {
  std::string month;
  std::string owner;
  int64_t gpu_ms = 0;
  bool operator==(const MonthUseRow&) const = default;
};

// What an owner's settled attempts that ended in one hour come to (core::EndHourUnixMs).
struct HourUseRow {
  int64_t hour_unix_ms = 0;
  std::string owner;
  int64_t gpu_ms = 0;
  bool operator==(const HourUseRow&) const = default;
};

// What lists filter by and show, kept beside the run's steps from which it follows.
struct RunSummary {
  core::RunWord word = core::RunWord::kQueued;
  int32_t retry_count = 0;  // of all steps together
  bool operator==(const RunSummary&) const = default;
};

// Counters that never go back within an epoch.
struct Meta {
  int64_t epoch = 1;
  int64_t revision = 0;
  int64_t next_run = 1;
  int64_t next_outbox = 1;
  int64_t ledger_seq = 0;
  std::string ledger_hash;
  bool operator==(const Meta&) const = default;
};

// One atomic commit. Rows are whole values: a step or run is inserted or replaced.
struct Txn {
  Meta meta;  // after the commit
  std::vector<core::Run> runs;
  std::vector<core::Step> steps;
  std::vector<EventRow> events;
  std::vector<OutboxRow> outbox_added;
  std::vector<int64_t> outbox_done;
  std::vector<core::LedgerRow> ledger;
  std::vector<RequestRow> requests;
  std::vector<SnapshotRow> snapshots;
  std::vector<TokenRow> tokens;
  std::vector<AuditRow> audit;
  std::vector<core::QuotaRule> quota_rules;        // inserted or replaced by id
  std::vector<int64_t> quota_rules_removed;        // after those above
  std::vector<StorageUseRow> storage_use;          // replaced by owner
  std::vector<WindowHoldRow> window_holds;         // replaced by series
  std::vector<core::NodeMark> node_marks;          // inserted or replaced by part
  std::vector<core::NodePart> node_marks_removed;  // after those above
  std::vector<core::Strike> strikes;               // one of a node and attempt
  std::vector<std::string> strikes_forgotten;      // of these nodes; after those above
  std::vector<core::Correction> corrections;       // inserted or replaced by key
  std::vector<std::string> corrections_done;       // keys; after those above
};

// What the loop starts from: everything that is not over, and what is still owed.
struct Loaded {
  Meta meta;
  std::vector<core::RunWithSteps> runs;       // those whose word is not terminal, by n
  std::vector<OutboxRow> outbox;              // by id
  std::vector<core::QuotaRule> quota_rules;   // by id
  std::vector<StorageUseRow> storage_use;     // by owner
  std::vector<WindowHoldRow> window_holds;    // by series
  std::vector<core::NodeMark> node_marks;     // by part
  std::vector<core::Strike> strikes;          // by node, then by when
  std::vector<MonthUseRow> month_use;         // of the newest two months in the ledger, by month and owner
  std::vector<HourUseRow> hour_use;           // of the same months, by hour and owner
  std::vector<core::Correction> corrections;  // by key
  bool operator==(const Loaded&) const = default;
};

}  // namespace tp::store
