#include "sim/server.h"

#include <utility>

#include "base/overloaded.h"
#include "base/strings.h"
#include "core/launch_plan.h"
#include "sim/fleet.h"
#include "sim/monitor.h"
#include "sim/units.h"

namespace tp::sim {
namespace {

// Within it a clock that was set is in a commit. Of one that no commit knows a flagged bill would tell.
constexpr int64_t kClockSetCommitted = kMinute;

constexpr Span kTurnDelay = {10, 2 * kMillisecond};

loop::Settings MakeSettings(const Options& options, const Defects& defects, const core::Table& table) {
  loop::Settings settings;
  settings.deployment = kDeployment;
  settings.policy = options.policy;
  if (defects.change_policy) defects.change_policy(settings.policy);
  settings.layout = {"/storage", 1 << 20, 1000};
  settings.table = &table;
  settings.max_messages_per_turn = 8;
  settings.max_launches_per_turn = 2;
  return settings;
}

Observation AsSeenBy(const Defects& defects, Observation observation) {
  if (defects.unknown_is_absent && std::holds_alternative<Unknown>(observation)) return Absent{};
  return observation;
}

}  // namespace

Server::Server(const Options& options, const Defects& defects, const core::Table& table, Timeline& timeline, Rng& rng,
               Journal& journal, SimSink& sink)
    : options_(options),
      defects_(defects),
      timeline_(timeline),
      rng_(rng),
      journal_(journal),
      sink_(sink),
      settings_(MakeSettings(options, defects, table)),
      registry_(std::make_shared<core::Registry>(MakeFleet(options, false))),
      store_(std::make_unique<store::MemoryStore>()) {}

// --- Life and death -------------------------------------------------------------------------------

void Server::Start() {
  ++life_;
  absl::StatusOr<store::Loaded> loaded = store_->Load();
  if (!loaded.ok()) {
    journal_.Break("the store does not load: {}", Message(loaded.status()));
    return;
  }
  if (defects_.outbox_forgotten) loaded->outbox.clear();
  if (defects_.quotas_forgotten) loaded->quota_rules.clear();
  if (defects_.marks_forgotten) loaded->node_marks.clear();
  if (defects_.corrections_forgotten) loaded->corrections.clear();
  const store::Loaded before = *loaded;
  loop_ = std::make_unique<loop::Loop>(settings_, *std::move(loaded), registry_, sink_,
                                       [this] { return fmt::format("{:016x}{:016x}", rng_.Next(), rng_.Next()); });
  loop_->SetListener([this](const loop::CommitNotice& notice) {
    const auto revision = store_->Revision();
    if (!revision.ok() || *revision < notice.revision) {
      journal_.Break("revision {} is announced before its commit", notice.revision);
    }
  });
  sink_.Connect({
      .answered =
          [this](loop::EffectAnswered answered) {
            loop_->Post(std::move(answered));
            Wake();
          },
      .observed =
          [this](loop::AttemptObserved observed) {
            observed.observation = AsSeenBy(defects_, std::move(observed.observation));
            loop_->Post(std::move(observed));
            Wake();
          },
  });
  journal_.Note("tpd starts");
  if (observers_.restarted) observers_.restarted();
  loop_->Recover();
  if (defects_.launch_repeated) LaunchAgain(before);
  Wake();
}

void Server::LaunchAgain(const store::Loaded& loaded) {
  for (const store::OutboxRow& row : loaded.outbox) {
    if (row.kind != store::OutboxKind::kLaunch) continue;
    for (const core::RunWithSteps& run : loaded.runs) {
      if (run.run.n != row.attempt.step.run) continue;
      const core::Step& step = run.steps[static_cast<size_t>(row.attempt.step.step)];
      const auto spec = core::PlanLaunch(settings_.layout, run.run, step);
      if (spec.ok() && spec->key == row.target.key) sink_.Launch(row.id, row.backend, *spec, row.target);
    }
  }
}

void Server::Crash(std::string_view when) {
  journal_.Note("tpd dies {}", when);
  if (writing_ && rng_.Chance(500)) Commit(*writing_);
  if (defects_.commits_lost && store_before_) store_ = std::move(store_before_);
  loop_.reset();
  writing_.reset();
  next_.reset();
  armed_.reset();
  turn_due_ = false;
  ++life_;
  sink_.Die();
  if (observers_.died) observers_.died();
  timeline_.In(rng_.Draw(options_.server.downtime), [this] { Start(); });
}

void Server::StartCrashes() {
  crashes_ = options_.server.between_crashes.high_us > 0;
  if (crashes_) CrashLater();
}

void Server::CrashLater() {
  timeline_.In(rng_.Draw(options_.server.between_crashes), [this] {
    if (options_.server.between_crashes.high_us == 0) return;
    if (up() && MayCrash()) Crash("between two instructions");
    CrashLater();
  });
}

bool Server::MayCrash() const { return timeline_.now_us() >= no_crash_before_us_; }

void Server::StartClockSets() {
  if (options_.server.between_clock_sets.high_us > 0) SetClockLater();
}

void Server::SetClockLater() {
  timeline_.In(rng_.Draw(options_.server.between_clock_sets), [this] {
    if (options_.server.between_clock_sets.high_us == 0) return;
    if (up()) SetClock();
    SetClockLater();
  });
}

void Server::SetClock() {
  const absl::Duration far = absl::Microseconds(rng_.Draw(options_.server.clock_set));
  const absl::Duration by = rng_.Chance(500) ? far : -far;
  journal_.Note("the clock is set by {} s", absl::ToInt64Seconds(by));
  timeline_.SetWall(by);
  if (!defects_.clock_set_ignored) loop_->ClockSet(by);
  no_crash_before_us_ = timeline_.now_us() + kClockSetCommitted;
  armed_.reset();
  Wake();
}

// --- Turns ----------------------------------------------------------------------------------------

bool Server::Quiet() const {
  if (!up() || writing_ || next_ || loop_->HasMessages()) return false;
  const auto timer = loop_->NextTimer();
  return !timer || *timer > timeline_.wall();
}

void Server::Post(loop::Command command, loop::Reply reply) {
  loop_->Post(std::move(command), std::move(reply));
  Wake();
}

void Server::Post(std::vector<loop::Command> commands, loop::BulkReply reply) {
  loop_->Post(std::move(commands), std::move(reply));
  Wake();
}

void Server::Post(loop::CardsSeen seen) {
  loop_->Post(std::move(seen));
  Wake();
}

void Server::Reload(std::shared_ptr<const core::Registry> registry) {
  registry_ = std::move(registry);
  if (!up()) return;
  loop_->Post(registry_);
  Wake();
}

void Server::Wake() {
  if (turn_due_ || next_) return;
  turn_due_ = true;
  timeline_.In(rng_.Draw(kTurnDelay), [this, life = life_] {
    if (life != life_) return;
    turn_due_ = false;
    if (!next_) Turn();
  });
}

void Server::ArmTimer() {
  const auto timer = loop_->NextTimer();
  if (!timer || (armed_ && *armed_ <= *timer)) return;
  armed_ = timer;
  timeline_.AtWall(*timer, [this, life = life_, at = *timer] {
    if (life != life_ || armed_ != at) return;
    armed_.reset();
    Wake();
  });
}

void Server::Turn() {
  std::optional<store::Txn> txn = loop_->Turn(timeline_.wall());
  if (observers_.turned) observers_.turned();
  if (txn) {
    next_ = std::move(txn);
    if (defects_.effects_before_commit) loop_->Committed();
    StartWriting();
  }
  if (next_) return;
  if (loop_->HasMessages()) Wake();
  ArmTimer();
}

// --- Commits --------------------------------------------------------------------------------------

void Server::StartWriting() {
  if (writing_ || !next_) return;
  writing_ = *std::exchange(next_, std::nullopt);
  timeline_.In(rng_.Draw(options_.server.commit), [this, life = life_] {
    if (life == life_) FinishWriting();
  });
}

void Server::FinishWriting() {
  const bool crash = rng_.Chance(options_.server.crash_at_commit) && MayCrash();
  if (crash && rng_.Chance(500)) {
    writing_.reset();
    Crash("before a commit");
    return;
  }
  Commit(*writing_);
  writing_.reset();
  if (crash) {
    Crash("after a commit, before its effects");
    return;
  }
  if (!defects_.effects_before_commit) loop_->Committed();
  StartWriting();
  if (loop_->HasMessages()) Wake();
  ArmTimer();
}

void Server::Commit(store::Txn txn) {
  if (defects_.commits_lost) store_before_ = store_->Clone();
  if (defects_.corrections_not_durable) txn.corrections.clear();
  if (defects_.corrections_kept) txn.corrections_done.clear();
  if (const absl::Status status = store_->Commit(txn); !status.ok()) {
    journal_.Break("the store refuses a commit: {}", Message(status));
  }
  if (observers_.committed) observers_.committed(txn);
}

}  // namespace tp::sim
