// The one owner of live state (DESIGN 12). Single-threaded and without I/O, clock or randomness of its
// own: LoopThread and the simulator drive it. One turn: messages -> core -> one Txn; its effects,
// replies and notices leave when that Txn is durable. The next turn may be computed while one commit
// is under way; Committed() is called once per Txn, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/apply.h"
#include "core/card_health.h"
#include "core/checkpoint.h"
#include "core/correction.h"
#include "core/gates.h"
#include "core/launch_plan.h"
#include "core/node_book.h"
#include "core/registry.h"
#include "core/run.h"
#include "core/withheld.h"
#include "loop/commands.h"
#include "loop/effects.h"
#include "loop/timers.h"
#include "plan/planner.h"
#include "store/rows.h"

namespace tp::loop {

struct Settings {
  core::Deployment deployment;
  core::Policy policy;
  core::LaunchLayout layout;
  absl::TimeZone accounting_zone = absl::UTCTimeZone();
  const core::Table* table = &core::ProductTable();  // another one only in tests of the tests
  int max_messages_per_turn = 256;
  int max_launches_per_turn = 256;
};

// The event of a step that is held because none could be applied to it.
inline constexpr char kQuarantined[] = "quarantined";

// An answer to an outbox row, or what was seen of a tracked attempt.
struct EffectAnswered {
  int64_t outbox_id = 0;
  EffectResult result;
};
struct AttemptObserved {
  std::string key;
  Observation observation;
};
// What a scan of the storage found, of all owners that have any.
struct StorageScanned {
  std::vector<store::StorageUseRow> use;
};

// What others hold of a backend's nodes, in place of what was said of it before.
struct CardsHeldElsewhere {
  std::string backend;
  std::vector<core::CardHeldElsewhere> cards;
};

// What a look at a backend's cards saw: all of the nodes that answered.
struct CardsSeen {
  std::string backend;
  absl::Time began;  // the look, on tpd's clock
  std::vector<CardSight> cards;
  std::vector<core::CardFault> faults;  // of `cards`, those that the look before did not find
};

// What was seen of the checkpoints of steps that run or are paused.
struct CheckpointsSeen {
  std::vector<std::pair<core::StepRef, core::CheckpointSight>> seen;
};

// Work done so far, counted; never reset.
struct Counters {
  int64_t turns = 0;
  int64_t messages = 0;
  int64_t launches = 0;
  int64_t quarantined = 0;  // events that could not be applied, see the event log
};

class Loop {
 public:
  // `nonce` makes 128 random bits as hex; `sink` outlives the loop. `loaded` is what the store holds now.
  Loop(Settings settings, store::Loaded loaded, std::shared_ptr<const core::Registry> registry, EffectSink& sink,
       std::function<std::string()> nonce);

  // Takes up what the last process left: tracks live attempts, sends again what is owed. Called once,
  // before the first turn.
  void Recover();

  // Messages wait for the next turn, in order.
  void Post(Command command, Reply reply);
  void Post(std::vector<Command> commands, BulkReply reply);
  void Post(DryRun dry_run, Reply reply);
  void Post(Query query, QueryReply reply);
  void Post(StandingQuery query, StandingReply reply);
  void Post(ForecastQuery query, ForecastReply reply);
  void Post(WhatIfQuery query, WhatIfReply reply);
  void Post(NodesQuery query, NodesReply reply);
  void Post(EffectAnswered answered);
  void Post(AttemptObserved observed);
  void Post(StorageScanned scanned);
  void Post(CheckpointsSeen seen);
  void Post(CardsHeldElsewhere held);
  void Post(CardsSeen seen);
  void Post(std::shared_ptr<const core::Registry> registry);
  void SetListener(CommitListener listener) { listener_ = std::move(listener); }

  // The real-time clock was set: deadlines keep their distance, windows are looked at anew. Between turns.
  void ClockSet(absl::Duration by);

  // Takes waiting messages and due timers and plans launches. Returns the transaction to commit, or
  // nothing where nothing changed.
  std::optional<store::Txn> Turn(absl::Time now);

  // The oldest transaction handed out is durable: its effects, replies and notice leave.
  void Committed();

  bool HasMessages() const { return !messages_.empty(); }
  // Gives up what still waits; what it returns answers that with UNAVAILABLE. For the end of the process,
  // after the last Committed().
  std::vector<std::function<void()>> Abandon();
  // When Turn has something to do although no message came.
  std::optional<absl::Time> NextTimer() const;

  const Settings& settings() const { return settings_; }
  const Counters& counters() const { return counters_; }
  const plan::Planner& planner() const { return planner_; }
  // For invariants in tests and the simulator.
  const std::map<int64_t, core::RunWithSteps>& runs() const { return runs_; }
  const std::map<std::string, core::Correction>& corrections() const { return corrections_; }

 private:
  struct CommandMessage {
    Command command;
    Reply reply;
  };
  struct CommandsMessage {
    std::vector<Command> commands;
    BulkReply reply;
  };
  struct DryRunMessage {
    DryRun dry_run;
    Reply reply;
  };
  struct QueryMessage {
    Query query;
    QueryReply reply;
  };
  struct StandingMessage {
    StandingQuery query;
    StandingReply reply;
  };
  struct ForecastMessage {
    ForecastQuery query;
    ForecastReply reply;
  };
  struct WhatIfMessage {
    WhatIfQuery query;
    WhatIfReply reply;
  };
  struct NodesMessage {
    NodesReply reply;
  };
  using RegistryMessage = std::shared_ptr<const core::Registry>;
  using Input = std::variant<CommandMessage, CommandsMessage, DryRunMessage, QueryMessage, StandingMessage,
                             ForecastMessage, WhatIfMessage, NodesMessage, EffectAnswered, AttemptObserved,
                             StorageScanned, CheckpointsSeen, CardsHeldElsewhere, CardsSeen, RegistryMessage>;

  // What one turn changed and what leaves once that is durable.
  struct Batch {
    store::Txn txn;
    std::set<int64_t> runs;         // whose Run row changed
    std::set<core::StepRef> steps;  // whose Step row changed
    std::vector<std::function<void()>> leaving;
    bool changed = false;
  };

  // Messages (loop.cc)
  void LoadQuotas(store::Loaded& loaded);
  void IndexAll();
  void Take(Input& input);
  void TakeRegistry(std::shared_ptr<const core::Registry> registry);
  void TakeObserved(const AttemptObserved& observed);
  void TakeTimers();

  // Commands (loop_commands.cc)
  void TakeCommand(CommandMessage& message);
  void TakeCommands(CommandsMessage& message);
  absl::StatusOr<Answer> CarryOnce(const Command& command);
  void DescribeIfLive(Answer& answer) const;
  void TakeDryRun(DryRunMessage& message);
  void ReplyLater(Reply reply, absl::StatusOr<Answer> answer);
  absl::StatusOr<Answer> Carry(const Command& command);
  absl::StatusOr<Answer> Submit(const Command& command, const SubmitRun& submit);
  absl::StatusOr<core::RunWithSteps> NewRun(const Principal& who, const SubmitRun& submit, std::string* note) const;
  absl::Status CheckShape(const core::StepSpec& spec, std::vector<std::string>& notes) const;
  absl::StatusOr<Answer> Preview(const DryRun& dry_run) const;
  absl::StatusOr<Answer> Steer(const Command& command, const core::RunWithSteps& stored,
                               const std::function<core::Event(const core::RunWithSteps&)>& make_event);
  absl::Status ApplyToOver(const core::Step& step, const core::Event& event, std::string* note) const;
  absl::StatusOr<Answer> Retry(const Command& command, const RetryRun& retry);
  void Drop(const core::RunWithSteps& run);
  LiveRun Describe(const core::RunWithSteps& run) const;
  void AddHints(LiveRun& live) const;
  std::optional<absl::StatusOr<Answer>> Remembered(const Command& command) const;
  void Remember(const Command& command, const Answer& answer);
  void Audit(const Command& command, int64_t run, std::string detail);

  // Commands that change no state (loop_update.cc)
  absl::StatusOr<Answer> Update(const Command& command, const UpdateRun& update);
  void ReplaceLive(core::RunWithSteps changed, const std::string& note);
  void WriteOver(const core::RunWithSteps& changed, const std::string& note);
  absl::StatusOr<Answer> Remove(const Command& command, const RemoveRun& remove);
  void OweRemoval(const core::Run& run);
  void LogOver(const core::RunWithSteps& run, std::string_view event, std::string note);

  // Orphans (loop_reconcile.cc)
  absl::StatusOr<Answer> Sweep(const Command& command, const SweepOrphans& sweep);
  void OweSweep(const core::AttemptRef& attempt, const SweepOrphans::Orphan& orphan);

  // Quota and windows: what admins set, where users stand (loop_quota.cc)
  struct Edit {
    plan::Change change;
    std::string note;
    std::string before;  // for the audit; empty: the note says it all
  };
  absl::StatusOr<Edit> EditOf(const Principal& who, const SetQuota& set) const;
  absl::StatusOr<Edit> EditOf(const Principal& who, const RemoveQuotaRule& remove) const;
  absl::StatusOr<Edit> EditOf(const Principal& who, const HoldWindowOpen& hold) const;
  absl::StatusOr<Answer> ChangeRules(const Command& command, absl::StatusOr<Edit> edit);
  void Make(const plan::Change& change, const std::string& set_by);
  void PutRule(core::QuotaRule rule);
  void DropRule(int64_t id);
  UserStanding StandingOf(const std::string& user) const;
  void TakeStanding(StandingMessage& message);
  void TakeWhatIf(WhatIfMessage& message);
  absl::StatusOr<WhatIfAnswer> WhatIfOf(const WhatIfQuery& query) const;
  std::vector<plan::Beside> BesideQueue() const;
  void TakeScanned(StorageScanned& scanned);

  // Nodes: what keeps jobs off them, and what was lost there (loop_nodes.cc)
  void LoadNodes(store::Loaded& loaded);
  absl::StatusOr<Answer> Mark(const Command& command, const MarkNode& mark);
  absl::StatusOr<Answer> Clear(const Command& command, const ClearNode& clear);
  absl::Status CheckPart(const core::NodePart& part) const;
  void PutMark(core::NodeMark mark);
  void AddStrike(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt);
  void TakeElsewhere(CardsHeldElsewhere& held);
  void TakeNodes(NodesMessage& message);
  void Withhold();
  void TrackAgain(const std::string& node);

  // What looks at cards saw (loop_cards.cc)
  void TakeCards(CardsSeen& seen);
  bool TakeBroken(const core::CardFault& fault);
  void TellAttempts(const CardsSeen& seen);
  void TellOfMended(const core::NodePart& card);
  void TakeStrangers(const CardsSeen& seen);
  void TakeIdle(const CardsSeen& seen);
  void TakeIdle(const core::Step& step, const std::map<core::NodePart, CardSight>& seen, absl::Time began);
  bool CardsWatched(const core::Attempt& attempt) const;
  void FollowCards(const core::Step& before, const core::Step& step, const core::Event& event);
  std::optional<absl::Time> IdleSince(const core::Step& step) const;

  // Checkpoints (loop_checkpoints.cc)
  struct KnownCheckpoints {
    core::CheckpointSight sight;
    bool warned = false;
    bool told = false;
  };
  void TakeCheckpoints(const CheckpointsSeen& seen);
  void TakeSight(const core::Step& step, const core::CheckpointSight& sight);
  std::optional<core::CheckpointSight> CheckpointsOf(const core::Step& step) const;

  // Effects (loop_effects.cc)
  void Enqueue(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt,
               const core::Effect& effect);
  void Settle(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt,
              const core::SettleMeter& settled);
  void AddToLedger(std::vector<core::LedgerRow> rows);
  void Send(const store::OutboxRow& row);
  void SendLater(const store::OutboxRow& row, const core::RunWithSteps* run);
  void TakeAnswer(const EffectAnswered& answered);
  bool IsOwedAnything(const std::string& key) const;
  void Done(int64_t outbox_id);
  AttemptTarget TargetOf(const core::RunWithSteps& run, const core::Step& step, const core::Attempt& attempt) const;

  // Corrections of flagged ends (loop_corrections.cc)
  void OweCorrection(const core::LedgerOwner& owner, const core::Attempt& attempt, const AttemptTarget& target,
                     const core::SettleMeter& settled);
  void LookWhereOwed();
  void TakeLate(const AttemptObserved& observed);
  void Correct(const core::Correction& correction);
  void DropCorrection(const std::string& key);
  void DropCorrectionsOf(int64_t run);
  void MoveCorrections(absl::Duration by);

  // Steps (loop_steps.cc)
  absl::Status ApplyTo(core::StepRef ref, const core::Event& event, std::string* note = nullptr);
  static void CopyNote(const std::vector<core::Taken>& taken, std::string* note);
  void Replace(core::RunWithSteps& run, core::Step& step, core::Transition transition, const core::Event& event);
  void LogTaken(const core::Step& step, const core::Event& event, const std::vector<core::Taken>& taken);
  void Log(const core::Step& step, std::string_view event, core::JobState from, core::JobState to, std::string note);
  void Reindex(const core::RunWithSteps& run, const core::Step& step);
  void Forget(const core::RunWithSteps& run);
  void RememberOver(const core::RunWithSteps& run);
  absl::Status CheckStored(const core::RunWithSteps& stored) const;
  core::Step* FindStep(core::StepRef ref);

  // Jobs that no event can be applied to (loop_quarantine.cc)
  bool Deliver(core::StepRef ref, const core::Event& event);
  void Quarantine(core::StepRef ref, const absl::Status& why);
  bool LiftQuarantine(core::RunWithSteps& run);
  void DeliverAgain(core::StepRef ref);
  std::optional<core::GateVerdict> QuarantineOf(core::StepRef ref) const;

  // What waits for something else (loop_dependents.cc)
  void FollowDependents(const core::RunWithSteps& run, const core::Step& step);
  void AfterStepEnded(core::RunWithSteps& run);
  absl::StatusOr<std::vector<core::RunDependency>> DependenciesOf(const std::vector<AfterRun>& after) const;
  absl::StatusOr<std::optional<core::RunWord>> OutcomeOf(const core::RunWithSteps& stored) const;
  absl::Status LookAgain(core::RunWithSteps& run, const std::vector<core::RunWithSteps>& after) const;
  void IndexDependencies(const core::RunWithSteps& run);
  void ForgetDependencies(const core::RunWithSteps& run);
  void TellDependents();
  void TellDependent(core::RunWithSteps& run, int64_t other, std::optional<core::RunWord> outcome);

  // Planner (loop_plan.cc)
  void TakeForecast(ForecastMessage& message);
  void Plan();
  void NoteShapes();
  bool TurnIsOver(core::StepRef ref);
  absl::Status Admit(plan::Start start);
  core::ResolvedShape ShapeOf(const core::Step& step, std::string* why) const;

  // Windows that close over what is live, and open again for what they paused (loop_windows.cc)
  void WatchWindow(const core::RunWithSteps& run, const core::Step& step);
  void WatchAllWindows();
  void TakeWindows();
  std::optional<core::Event> DueByWindow(const core::RunWithSteps& run, const core::Step& step,
                                         const core::ResolvedShape& shape) const;
  template <typename Look>
  auto WithWindowShape(const core::Step& step, const Look& look) const;
  std::optional<absl::Time> NextByWindow(const core::RunWithSteps& run, const core::Step& step) const;
  absl::Duration JitterOf(core::StepRef ref) const;

  std::optional<store::Txn> Seal();

  const Settings settings_;
  std::shared_ptr<const core::Registry> registry_;
  EffectSink& sink_;
  const std::function<std::string()> nonce_;
  CommitListener listener_;

  std::deque<Input> messages_;
  absl::Time now_;
  Batch batch_;
  std::deque<std::vector<std::function<void()>>> outgoing_;  // one entry per uncommitted Txn

  store::Meta meta_;
  std::map<int64_t, core::RunWithSteps> runs_;
  std::map<std::string, core::StepRef> by_key_;
  std::map<int64_t, std::set<int64_t>> dependents_;  // live runs, by the run that they come after
  std::set<int64_t> turned_runs_;                    // of this turn: a step ended, or is to run again
  std::map<int64_t, store::OutboxRow> outbox_;
  std::set<std::pair<std::string, StopLevel>> owed_signals_;  // of outbox_, by the attempt's key
  std::map<int64_t, int> outbox_failures_;
  std::set<std::pair<absl::Time, int64_t>> outbox_retries_;
  std::map<std::string, core::Correction> corrections_;  // that are owed, by the attempt's key
  Timers<std::string> record_looks_;                     // of corrections_, by key
  Timers<core::StepRef> timers_;
  plan::Planner planner_;
  int64_t next_quota_rule_ = 1;
  using Requests = std::map<std::pair<std::string, std::string>, store::RequestRow>;
  Requests requests_;  // the newest; the Reader has all
  std::deque<Requests::iterator> request_order_;
  std::map<int64_t, std::string> over_;  // runs that left memory, and what they were then
  std::deque<int64_t> over_order_;
  Timers<core::StepRef> window_timers_;  // which a window may pause or resume, and when
  std::map<core::StepRef, KnownCheckpoints> checkpoints_;
  core::NodeBook nodes_;
  std::map<std::string, std::vector<core::CardHeldElsewhere>> elsewhere_;  // by backend
  std::map<std::string, std::vector<core::CardHeldElsewhere>> strangers_;  // as looks at cards saw them, by backend
  std::map<std::string, core::UntakenFaults> untaken_faults_;              // by backend
  std::map<std::string, std::set<std::string>> watched_nodes_;             // that answer looks, by backend
  std::map<core::NodePart, absl::Time> cleared_;                           // when an admin put it into service last
  std::map<core::NodePart, absl::Time> released_;                          // when a card was given back last
  std::map<core::StepRef, core::IdleSpell> idle_;                          // in memory: another look sees it again
  absl::Time first_turn_at_;
  std::map<core::StepRef, std::string> last_notes_;   // as logged, of live runs
  std::map<core::StepRef, std::string> quarantined_;  // of live runs, and why
  std::set<std::string> swept_;                       // keys of orphans that are being ended
  std::set<int64_t> unheard_;                         // of outbox_: answered while its step was in quarantine
  Counters counters_;
};

}  // namespace tp::loop
