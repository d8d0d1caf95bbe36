#include "loop/loop.h"

#include <algorithm>

#include "base/fault_point.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "core/fold.h"

namespace tp::loop {

Loop::Loop(Settings settings, store::Loaded loaded, std::shared_ptr<const core::Registry> registry, EffectSink& sink,
           std::function<std::string()> nonce)
    : settings_(std::move(settings)),
      registry_(std::move(registry)),
      sink_(sink),
      nonce_(std::move(nonce)),
      meta_(std::move(loaded.meta)),
      planner_(settings_.policy, settings_.accounting_zone, registry_) {
  for (core::RunWithSteps& run : loaded.runs) {
    const int64_t n = run.run.n;
    core::RunWithSteps& kept = runs_.emplace(n, std::move(run)).first->second;
    for (core::Step& step : kept.steps) core::FoldRestart(step);
    IndexDependencies(kept);
  }
  LoadQuotas(loaded);
  LoadNodes(loaded);
  for (store::OutboxRow& row : loaded.outbox) {
    const int64_t id = row.id;
    if (row.kind == store::OutboxKind::kSignal) owed_signals_.emplace(row.target.key, row.level);
    outbox_.emplace(id, std::move(row));
  }
  for (core::Correction& correction : loaded.corrections) {
    std::string key = correction.target.key;
    corrections_.emplace(std::move(key), std::move(correction));
  }
}

// The first turn knows the time.
void Loop::IndexAll() {
  for (const auto& [n, run] : runs_) {
    for (const core::Step& step : run.steps) Reindex(run, step);
  }
  for (const auto& [key, correction] : corrections_) record_looks_.Set(key, now_);
}

// What admins set, and what scans and the ledger say.
void Loop::LoadQuotas(store::Loaded& loaded) {
  for (core::QuotaRule& rule : loaded.quota_rules) {
    next_quota_rule_ = std::max(next_quota_rule_, rule.id + 1);
    planner_.PutRule(std::move(rule));
  }
  for (const store::StorageUseRow& row : loaded.storage_use) planner_.SetStorage(row.owner, row.use);
  for (const store::WindowHoldRow& row : loaded.window_holds) planner_.HoldOpen(row.series, row.until);
  for (const store::MonthUseRow& row : loaded.month_use) planner_.AddSettled(row.month, row.owner, row.gpu_ms);
  for (const store::HourUseRow& row : loaded.hour_use) planner_.AddUse(row.owner, row.hour_unix_ms, row.gpu_ms);
}

void Loop::Recover() {
  for (const auto& [n, run] : runs_) {
    for (const core::Step& step : run.steps) {
      if (step.attempt) sink_.Track(step.attempt->shape.backend, TargetOf(run, step, *step.attempt));
    }
  }
  ReachFaultPoint(FaultPoint::kStartTracked);
  for (const auto& [id, row] : outbox_) {
    if (row.kind == store::OutboxKind::kLaunch) {
      // Sent or not, nobody knows: it is looked up, never sent a second time.
      Post(EffectAnswered{id, LaunchResult{LaunchIndeterminate{"tpd restarted while it was handed over"}}});
    } else {
      Send(row);
    }
  }
}

void Loop::Post(Command command, Reply reply) {
  messages_.push_back(CommandMessage{std::move(command), std::move(reply)});
}
void Loop::Post(std::vector<Command> commands, BulkReply reply) {
  messages_.push_back(CommandsMessage{std::move(commands), std::move(reply)});
}
void Loop::Post(DryRun dry_run, Reply reply) {
  messages_.push_back(DryRunMessage{std::move(dry_run), std::move(reply)});
}
void Loop::Post(Query query, QueryReply reply) {
  messages_.push_back(QueryMessage{std::move(query), std::move(reply)});
}
void Loop::Post(StandingQuery query, StandingReply reply) {
  messages_.push_back(StandingMessage{std::move(query), std::move(reply)});
}
void Loop::Post(ForecastQuery query, ForecastReply reply) {
  messages_.push_back(ForecastMessage{std::move(query), std::move(reply)});
}
void Loop::Post(WhatIfQuery query, WhatIfReply reply) {
  messages_.push_back(WhatIfMessage{std::move(query), std::move(reply)});
}
void Loop::Post(NodesQuery, NodesReply reply) { messages_.push_back(NodesMessage{std::move(reply)}); }
void Loop::Post(CardsHeldElsewhere held) { messages_.push_back(std::move(held)); }
void Loop::Post(CardsSeen seen) { messages_.push_back(std::move(seen)); }
void Loop::Post(StorageScanned scanned) { messages_.push_back(std::move(scanned)); }
void Loop::Post(CheckpointsSeen seen) { messages_.push_back(std::move(seen)); }
void Loop::Post(EffectAnswered answered) { messages_.push_back(std::move(answered)); }
void Loop::Post(AttemptObserved observed) { messages_.push_back(std::move(observed)); }
void Loop::Post(std::shared_ptr<const core::Registry> registry) { messages_.push_back(std::move(registry)); }

std::optional<store::Txn> Loop::Turn(absl::Time now) {
  now_ = now;
  if (counters_.turns++ == 0) {
    first_turn_at_ = now;
    IndexAll();
  }
  for (int i = 0; i < settings_.max_messages_per_turn && !messages_.empty(); ++i) {
    Input input = std::move(messages_.front());
    messages_.pop_front();
    ++counters_.messages;
    Take(input);
  }
  TakeTimers();
  LookWhereOwed();
  TakeWindows();
  TellDependents();
  Plan();
  return Seal();
}

void Loop::ClockSet(absl::Duration by) {
  first_turn_at_ += by;
  now_ += by;  // what was moved along is compared with it before the next turn
  for (auto& [n, run] : runs_) {
    for (core::Step& step : run.steps) {
      const core::Step before = step;
      core::FoldClockSet(step, by);
      if (before == step) continue;
      batch_.steps.insert(step.ref);
      batch_.changed = true;
      Reindex(run, step);
    }
  }
  for (auto& [at, id] : std::exchange(outbox_retries_, {})) outbox_retries_.emplace(at + by, id);
  for (auto& [ref, spell] : idle_) {
    spell.since += by;
    spell.seen += by;
  }
  for (auto& [card, at] : released_) at += by;
  for (auto& [part, at] : cleared_) at += by;
  MoveCorrections(by);
  planner_.ClockSet(by);
  WatchAllWindows();
}

void Loop::Take(Input& input) {
  std::visit(Overloaded{
                 [&](CommandMessage& command) { TakeCommand(command); },
                 [&](CommandsMessage& commands) { TakeCommands(commands); },
                 [&](DryRunMessage& dry_run) { TakeDryRun(dry_run); },
                 [&](QueryMessage& query) {
                   std::vector<LiveRun> found;
                   for (int64_t n : query.query.runs) {
                     if (auto run = runs_.find(n); run != runs_.end()) {
                       found.push_back(Describe(run->second));
                       if (query.query.explain) AddHints(found.back());
                     }
                   }
                   batch_.leaving.push_back([reply = std::move(query.reply), found = std::move(found)]() mutable {
                     reply(std::move(found));
                   });
                 },
                 [&](StandingMessage& standing) { TakeStanding(standing); },
                 [&](ForecastMessage& forecast) { TakeForecast(forecast); },
                 [&](WhatIfMessage& what_if) { TakeWhatIf(what_if); },
                 [&](NodesMessage& nodes) { TakeNodes(nodes); },
                 [&](CardsHeldElsewhere& held) { TakeElsewhere(held); },
                 [&](CardsSeen& seen) { TakeCards(seen); },
                 [&](StorageScanned& scanned) { TakeScanned(scanned); },
                 [&](CheckpointsSeen& seen) { TakeCheckpoints(seen); },
                 [&](const EffectAnswered& answered) { TakeAnswer(answered); },
                 [&](const AttemptObserved& observed) { TakeObserved(observed); },
                 [&](RegistryMessage& registry) { TakeRegistry(std::move(registry)); },
             },
             input);
}

// The newest counts, whatever order they come in.
void Loop::TakeRegistry(std::shared_ptr<const core::Registry> registry) {
  if (registry->version < registry_->version) return;
  registry_ = std::move(registry);
  planner_.SetRegistry(registry_, now_);
  WatchAllWindows();
}

void Loop::TakeObserved(const AttemptObserved& observed) {
  const auto found = by_key_.find(observed.key);
  if (found == by_key_.end()) return TakeLate(observed);  // the attempt has been left
  const core::Step* const step = FindStep(found->second);
  const bool watched = step != nullptr && step->attempt && CardsWatched(*step->attempt);
  Deliver(found->second, core::Observed{observed.observation, watched});
}

void Loop::TakeTimers() {
  while (const auto due = timers_.Due(now_)) {
    const auto& [at, ref] = *due;
    Deliver(ref, core::TimerFired{});
    // Nothing came of it: it is set again by the step's next event, or it would be due for ever.
    if (timers_.Of(ref) == at) timers_.Drop(ref);
  }
  while (!outbox_retries_.empty() && outbox_retries_.begin()->first <= now_) {
    const int64_t id = outbox_retries_.begin()->second;
    outbox_retries_.erase(outbox_retries_.begin());
    if (auto row = outbox_.find(id); row != outbox_.end()) SendLater(row->second, nullptr);
  }
}

std::vector<std::function<void()>> Loop::Abandon() {
  std::vector<std::function<void()>> answers;
  for (Input& input : std::exchange(messages_, {})) {
    const auto refuse = [&answers](Reply reply) {
      answers.push_back([reply = std::move(reply)] { reply(Unavailable("tpd is stopping: try again")); });
    };
    if (auto* command = std::get_if<CommandMessage>(&input)) refuse(std::move(command->reply));
    if (auto* commands = std::get_if<CommandsMessage>(&input)) {
      answers.push_back([reply = std::move(commands->reply), count = commands->commands.size()] {
        reply(std::vector<absl::StatusOr<Answer>>(count, Unavailable("tpd is stopping: try again")));
      });
    }
    if (auto* dry_run = std::get_if<DryRunMessage>(&input)) refuse(std::move(dry_run->reply));
    if (auto* query = std::get_if<QueryMessage>(&input)) {
      answers.push_back([reply = std::move(query->reply)] { reply({}); });
    }
    if (auto* standing = std::get_if<StandingMessage>(&input)) {
      answers.push_back([reply = std::move(standing->reply)] { reply(Unavailable("tpd is stopping: try again")); });
    }
    if (auto* forecast = std::get_if<ForecastMessage>(&input)) {
      answers.push_back([reply = std::move(forecast->reply)] { reply(Unavailable("tpd is stopping: try again")); });
    }
    if (auto* nodes = std::get_if<NodesMessage>(&input)) {
      answers.push_back([reply = std::move(nodes->reply)] { reply(Unavailable("tpd is stopping: try again")); });
    }
    if (auto* what_if = std::get_if<WhatIfMessage>(&input)) {
      answers.push_back([reply = std::move(what_if->reply)] { reply(Unavailable("tpd is stopping: try again")); });
    }
  }
  return answers;
}

std::optional<absl::Time> Loop::NextTimer() const {
  if (counters_.turns == 0) return absl::InfinitePast();  // what was loaded has timers of its own
  std::optional<absl::Time> next;
  if (!outbox_retries_.empty()) next = outbox_retries_.begin()->first;
  for (const auto& at : {timers_.Next(), record_looks_.Next(), window_timers_.Next(), planner_.NextWake()}) {
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

// Rows are taken from the final state of the turn, so each is written once however often it changed.
std::optional<store::Txn> Loop::Seal() {
  if (!batch_.changed) {
    // Nothing to commit; what leaves may still not overtake a commit under way.
    if (outgoing_.empty()) {
      auto leaving = std::move(batch_.leaving);
      batch_ = {};
      for (auto& leave : leaving) leave();
    } else {
      auto& last = outgoing_.back();
      std::move(batch_.leaving.begin(), batch_.leaving.end(), std::back_inserter(last));
      batch_ = {};
    }
    return std::nullopt;
  }
  store::Txn txn = std::move(batch_.txn);
  std::vector<int64_t> over;
  for (int64_t n : batch_.runs) txn.runs.push_back(runs_.at(n).run);
  for (const core::StepRef& ref : batch_.steps) {
    const core::RunWithSteps& run = runs_.at(ref.run);
    txn.steps.push_back(run.steps[static_cast<size_t>(ref.step)]);
    if (core::IsTerminal(core::RollUp(run.steps))) over.push_back(ref.run);
  }
  txn.meta = meta_;
  std::vector<std::function<void()>> leaving = std::move(batch_.leaving);
  if (listener_) {
    leaving.push_back([this, notice = CommitNotice{meta_.revision, txn.events}] { listener_(notice); });
  }
  outgoing_.push_back(std::move(leaving));
  batch_ = {};
  for (int64_t n : over) {
    if (auto run = runs_.find(n); run != runs_.end()) Forget(run->second);
  }
  return txn;
}

void Loop::Committed() {
  std::vector<std::function<void()>> leaving = std::move(outgoing_.front());
  outgoing_.pop_front();
  for (auto& leave : leaving) leave();
}

}  // namespace tp::loop
