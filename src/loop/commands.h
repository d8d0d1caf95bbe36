// What the API asks of the loop, and what it is told. Values only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/array.h"
#include "core/checkpoint.h"
#include "core/fair_share.h"
#include "core/gates.h"
#include "core/node_book.h"
#include "core/quota.h"
#include "core/registry.h"
#include "core/revision.h"
#include "core/run.h"
#include "core/step.h"
#include "core/windows.h"
#include "core/withheld.h"
#include "plan/estimate.h"
#include "plan/what_if.h"
#include "store/rows.h"

namespace tp::loop {

struct Principal {
  std::string user;
  store::Role role = store::Role::kUser;
  bool operator==(const Principal&) const = default;

  bool at_least(store::Role wanted) const { return role >= wanted; }
};

// A run that the new one comes after. Where the loop has it no more, what is stored counts.
struct AfterRun {
  core::RunWithSteps stored;
  core::AfterWhen when = core::AfterWhen::kSuccess;
};

struct SubmitRun {
  std::string name;     // becomes the slug
  std::string project;  // never empty
  std::string snapshot_id;
  std::map<std::string, std::string> labels;
  std::vector<core::StepSpec> steps;
  std::optional<int32_t> priority = std::nullopt;  // absent: the default
  std::string clone_of;                            // id of the run that this one copies; for the audit
  std::vector<AfterRun> after = {};
  std::optional<core::ArraySpec> array = std::nullopt;  // of the one step
  bool hold = false;                                    // by its owner, from the beginning
  std::vector<core::Notice> notify = {};
};
// A run that is over is not in the loop's memory: for these the caller reads it from the store and
// hands it in; where the loop has the run, that is what counts.
struct StopRun {
  core::RunWithSteps stored;
};
struct PauseRun {
  core::RunWithSteps stored;
};
struct ResumeRun {
  core::RunWithSteps stored;
};
struct RetryRun {
  core::RunWithSteps stored;
  std::vector<core::RunWithSteps> after = {};  // the runs that it came after, as stored
};
struct UpdateRun {
  core::RunWithSteps stored;
  core::Revision revision;
  std::string expected_version;  // empty: whatever it is
};
// The run is over: what is left is a tombstone, and its directory is removed.
struct RemoveRun {
  core::RunWithSteps stored;
};
struct AddSnapshot {
  store::SnapshotRow snapshot;
};
// The registry is in force; `answer` is what a repeated request is told, `detail` goes to the audit.
struct ReloadRegistry {
  std::shared_ptr<const core::Registry> registry;
  std::string answer;
  std::string detail;
};

// For admins. Without dates it edits the user's own rule, of which what is neither cleared nor set stays; a
// dated one is a new rule.
struct SetQuota {
  std::string user;
  std::optional<absl::Time> from;
  std::optional<absl::Time> until;
  core::QuotaKeys clear;
  core::QuotaLimits limits;  // that are set
};
// For admins. NOT_FOUND: no such rule.
struct RemoveQuotaRule {
  int64_t id = 0;
};
// For admins: the windows of a series count as open until then; absent: by its hours again.
struct HoldWindowOpen {
  std::string series;
  std::optional<absl::Time> until;
};

// For admins: the node, or one card of it, takes no new jobs; a mark that it has is replaced. Declared dead (only a
// whole node): what runs there ends without being asked.
struct MarkNode {
  core::NodePart part;
  core::MarkKind kind = core::MarkKind::kDrained;
  std::string reason;
};
// For admins: it takes jobs again, and its strikes are forgotten. NOT_FOUND: it has no mark and no strikes.
struct ClearNode {
  core::NodePart part;
};

// For admins: objects of engines that no live attempt owns are ended.
struct SweepOrphans {
  struct Orphan {
    std::string backend;
    AttemptTarget target;
  };
  std::vector<Orphan> orphans;
};

using Action =
    std::variant<SubmitRun, StopRun, PauseRun, ResumeRun, RetryRun, UpdateRun, RemoveRun, AddSnapshot, ReloadRegistry,
                 SetQuota, RemoveQuotaRule, HoldWindowOpen, MarkNode, ClearNode, SweepOrphans>;

// A mutating call. Several may be posted together: they are carried out in one turn and so are in one commit, each
// taken or refused by itself, and answered without `live`. Who may do it is checked by the loop against the run's
// owner: owners their own, operators and admins any; PERMISSION_DENIED.
struct Command {
  Principal who;
  std::string request_id;   // never empty
  std::string method;       // for the audit
  std::string body_sha256;  // of the request; the same id with another body is ALREADY_EXISTS
  Action action;
};

// What a submission would come to: its shape, notes and the gates it would meet. Creates nothing and has
// no request id, so that nothing of it is remembered.
struct DryRun {
  Principal who;
  SubmitRun submit;
};

// What such a change would do, were it made now; FAILED as the change would. For a registry: for whoever may reload it.
using Proposal = std::variant<std::shared_ptr<const core::Registry>, SetQuota, RemoveQuotaRule, HoldWindowOpen>;
struct WhatIfQuery {
  Principal who;
  Proposal proposal;
};
// The loop hands out an image; what follows is for the caller's thread to work out.
struct WhatIfAnswer {
  std::string note;  // what the change would be answered with
  std::shared_ptr<const plan::WhatIf> what_if;
};
using WhatIfReply = std::function<void(absl::StatusOr<WhatIfAnswer>)>;

// A run as the loop sees it now, with what holds its queued steps.
struct LiveRun {
  core::RunWithSteps run;
  std::vector<std::vector<core::GateVerdict>> gates;  // by step; empty unless QUEUED or in quarantine
  std::vector<core::ResolvedShape> shapes;            // by step; the frozen one while there is an attempt
  // By step, where asked for: what would let it start, `h200:8 would start now`.
  std::vector<std::vector<std::string>> hints = {};
  std::vector<std::optional<core::CheckpointSight>> checkpoints = {};  // by step
  std::vector<std::optional<absl::Time>> idle_since = {};              // by step, where that is worth showing
};

struct Answer {
  int64_t run = 0;
  std::string run_id;
  std::string note;  // what the user is told, one sentence a line
  std::optional<LiveRun> live;
};

// Called once, on a thread of the loop's, after the commit that made it true. Must not block.
using Reply = std::function<void(absl::StatusOr<Answer>)>;
using BulkReply = std::function<void(std::vector<absl::StatusOr<Answer>>)>;  // one for each, in order

// Committed state of live runs; runs that are not live are left out.
struct Query {
  std::vector<int64_t> runs;
  bool explain = false;  // fill LiveRun::hints
};
using QueryReply = std::function<void(std::vector<LiveRun>)>;

// Where users stand with their quota.
struct StandingQuery {
  std::vector<std::string> users;
  bool everybody = false;  // all that hold something, queue something or have a rule of their own
};
struct UserStanding {
  std::string user;
  core::QuotaLimits limits;  // that count now
  core::QuotaUse use;
  std::vector<core::QuotaRule> rules;  // the user's own
};
struct Standings {
  std::vector<UserStanding> users;  // by name
  core::QuotaLimits defaults;
  core::HeldOpen held_open;
  core::Shares shares;  // empty: they do not count in the order
};
using StandingReply = std::function<void(absl::StatusOr<Standings>)>;

// What keeps jobs off nodes, what was lost on them, and who holds cards of them.
struct NodesQuery {};
struct NodesAnswer {
  std::vector<core::NodeMark> marks;  // by part
  std::vector<core::Strike> strikes;  // that count, by node and then by when
  std::vector<core::CardHeldElsewhere> elsewhere;
  struct Holder {
    core::NodePart part;  // whole: the place of a cpu series
    std::string run_id;
    std::string owner;
  };
  std::vector<Holder> holders;  // of this deployment, by part
};
using NodesReply = std::function<void(absl::StatusOr<NodesAnswer>)>;

// What estimates of starts are made of: everything that holds cards or was paused by a window, and of these
// steps those that wait. A copy, so that the loop has no part in what is made of it.
struct ForecastQuery {
  std::vector<core::StepRef> waiting;
};
using ForecastReply = std::function<void(absl::StatusOr<std::shared_ptr<const plan::ForecastInput>>)>;

// After each commit: its events, in order, to whoever follows. Called on a thread of the loop's; must
// not block.
struct CommitNotice {
  int64_t revision = 0;
  std::vector<store::EventRow> events;
};
using CommitListener = std::function<void(const CommitNotice&)>;

}  // namespace tp::loop
